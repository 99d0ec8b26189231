"""A short share of the long run, always the same one; and that the judge would notice."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.apiserver.api import Answer
from tests.openapi_fuzz.run import fault, fuzz

REQUESTS = 500
JSON = {"content-type": ["application/json"]}


@pytest.mark.slow
async def test_no_request_made_from_the_document_fails_the_server(tmp_path: Path) -> None:
    codes, wrong = await fuzz(tmp_path, seed=4, seconds=120, requests_max=REQUESTS)
    assert not wrong, "\n\n".join(wrong[:3])
    assert {200, 201, 400, 404, 422} <= set(codes), codes


def test_failures_are_noticed() -> None:
    status = {"kind": "Status", "code": 500, "message": "it broke"}
    assert fault(Answer(500, JSON, orjson.dumps(status)))
    assert fault(Answer(404, JSON, b'{"kind":"Status","code":400}'))
    assert fault(Answer(422, JSON, b'{"kind":"Pod"}'))
    assert not fault(Answer(404, JSON, b'{"kind":"Status","code":404}'))
    assert not fault(Answer(501, JSON, b'{"kind":"Status","code":501}'))
