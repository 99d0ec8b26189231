"""Continue tokens and resource versions."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import continue_token, go_json, resource_version

PREFIX = "/registry/pods/"


def token(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_token_says_where_to_go_on() -> None:
    made = continue_token.encode("/registry/pods/ns/a\0", PREFIX, 5)
    assert base64.urlsafe_b64decode(made + "==") == b'{"v":"meta.k8s.io/v1","rv":5,"start":"ns/a\\u0000"}'
    found = continue_token.decode(made, PREFIX)
    assert (found.start_key, found.revision) == ("/registry/pods/ns/a\0", 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "continue key is not valid: unexpected end of JSON input"),
        ("!!", "continue key is not valid: illegal base64 data at input byte 0"),
        ("abcde", "continue key is not valid: illegal base64 data at input byte 4"),
        ("abc=", "continue key is not valid: illegal base64 data at input byte 3"),
        ("aGVsbG8", "continue key is not valid: invalid character 'h' looking for beginning of value"),
        (token({}), "continue key is not valid: server does not recognize this encoded version "),
        (token({"v": "v9", "rv": 1, "start": "a"}), "continue key is not valid: server does not recognize this encoded version v9"),
        (
            token({"v": "meta.k8s.io/v1", "start": "a"}),
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (token({"v": "meta.k8s.io/v1", "rv": 1}), "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"),
        (token({"v": "meta.k8s.io/v1", "rv": 1, "start": "../x"}), "continue key is not valid: ../x"),
        (token({"v": "meta.k8s.io/v1", "rv": 1, "start": "a//b"}), "continue key is not valid: a//b"),
        (
            token({"v": "meta.k8s.io/v1", "rv": "1"}),
            "continue key is not valid: json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
        (token([]), "continue key is not valid: json: cannot unmarshal array into Go value of type storage.continueToken"),
    ],
)
def test_a_token_is_not_valid(text: str, message: str) -> None:
    with pytest.raises(continue_token.ContinueTokenError) as e:
        continue_token.decode(text, PREFIX)
    assert str(e.value) == message


def test_a_key_outside_of_the_list_gets_no_token() -> None:
    with pytest.raises(continue_token.ContinueTokenError):
        continue_token.encode("/registry/secrets/a", PREFIX, 1)


@given(st.text())
def test_any_text_is_a_token_or_refused(text: str) -> None:
    try:
        found = continue_token.decode(text, PREFIX)
    except continue_token.ContinueTokenError:
        return
    assert found.start_key.startswith(PREFIX)


@given(st.binary())
def test_any_bytes_in_a_token_are_a_token_or_refused(data: bytes) -> None:
    with contextlib.suppress(continue_token.ContinueTokenError):
        continue_token.decode(base64.urlsafe_b64encode(data).rstrip(b"=").decode(), PREFIX)


@given(st.lists(st.text(alphabet="abc-<&", min_size=1), min_size=1, max_size=2), st.integers(1, 2**63 - 1))
def test_tokens_survive(parts: list[str], revision: int) -> None:
    key = PREFIX + "/".join(parts) + "\0"
    found = continue_token.decode(continue_token.encode(key, PREFIX, revision), PREFIX)
    assert (found.start_key, found.revision) == (key, revision)


def test_resource_versions() -> None:
    assert resource_version.parse("") == resource_version.parse("0") == 0
    assert resource_version.parse("18446744073709551615") == 2**64 - 1
    for text, why in (("abc", "invalid syntax"), ("-1", "invalid syntax"), ("18446744073709551616", "value out of range")):
        with pytest.raises(resource_version.ResourceVersionError) as e:
            resource_version.parse(text)
        assert str(e.value) == f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
    with pytest.raises(go_json.GoError, match=r'^strconv.ParseUint: parsing "bad": invalid syntax$'):
        resource_version.of_object("bad")
    with pytest.raises(resource_version.ResourceVersionError, match="out of range"):
        resource_version.parse("9" * 100_000)
