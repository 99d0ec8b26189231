"""A continue token with half of a surrogate pair in its key (``\\ud800``, which JSON can write and UTF-8 cannot) was a 500 with a trace
in the log, for the key could not be encoded. Go reads U+FFFD for it."""

from __future__ import annotations

import base64

from apiserver.machinery import continue_token, go_json
from tests.apiserver.api import Api

CM = "/api/v1/namespaces/ns-a/configmaps"


def test_half_pairs_become_the_replacement_character() -> None:
    assert go_json.decode_json(rb'{"\ud800": ["x\udfffy", 1, "\ud83d\ude00"]}') == {"\ufffd": ["x\ufffdy", 1, "\U0001f600"]}


def test_a_token_with_half_a_pair_decodes_to_a_key_that_can_be_encoded() -> None:
    token = base64.urlsafe_b64encode(rb'{"v":"meta.k8s.io/v1","rv":1,"start":"a\ud800"}').decode().rstrip("=")
    assert continue_token.decode(token, "/registry/").start_key.encode() == "/registry/a\ufffd".encode()


async def test_such_a_token_is_answered(api: Api) -> None:
    revision = (await api.get(CM)).json["metadata"]["resourceVersion"]
    raw = f'{{"v":"meta.k8s.io/v1","rv":{revision},"start":"\\ud800"}}'.encode()
    answer = await api.get(CM, query={"limit": "1", "continue": base64.urlsafe_b64encode(raw).decode().rstrip("=")})
    assert answer.status == 200
