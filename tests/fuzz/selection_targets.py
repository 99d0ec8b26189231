"""What a list or watch takes in its query: selectors, tokens, numbers; any bytes are understood, or refused in Kubernetes' words."""

from __future__ import annotations

from urllib.parse import urlencode

from apiserver.handler_chain import _parse_query
from apiserver.machinery import continue_token, fields, labels, resource_version
from apiserver.machinery.status import StatusError
from apiserver.request.options import list_options

PREFIX = "/pods/ns-a/"
#: Objects that a selector is tried on, to see that what it was written as means the same.
LABELS: tuple[dict[str, str], ...] = ({}, {"a": ""}, {"a": "b"}, {"a": "1", "c": "d"}, {"x.example/y": "z"}, {"c": "5"})


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def label_selector(data: bytes) -> None:
    """Refused with SelectorError, or its text parses to a selector that matches the same objects."""
    try:
        selector = labels.parse(text_of(data))
    except labels.SelectorError as error:
        assert str(error)
        return
    again = labels.parse(str(selector))
    assert [again.matches(each) for each in LABELS] == [selector.matches(each) for each in LABELS]


def field_selector(data: bytes) -> None:
    """The same for fields."""
    try:
        selector = fields.parse(text_of(data))
    except fields.SelectorError as error:
        assert str(error)
        return
    assert sorted(fields.parse(str(selector)).terms, key=str) == sorted(selector.terms, key=str)


def token(data: bytes) -> None:
    """Refused with ContinueTokenError, or a key below the prefix that an equal token can be made of."""
    try:
        decoded = continue_token.decode(text_of(data), PREFIX)
    except continue_token.ContinueTokenError as error:
        assert str(error).startswith("continue key is not valid")
        return
    assert decoded.start_key.startswith(PREFIX) and decoded.revision
    assert "/../" not in decoded.start_key
    again = continue_token.encode(decoded.start_key, PREFIX, decoded.revision)
    if decoded.start_key != PREFIX:
        assert continue_token.decode(again, PREFIX) == decoded


def query(data: bytes) -> None:
    """A query string to options: 400 and 422 are the only refusals, and the resource version is a number or says that it is none."""
    try:
        options = list_options(_parse_query(data))
    except StatusError as error:
        assert error.code in (400, 422), error.status
        assert error.status["reason"] in ("BadRequest", "Invalid")
        return
    assert options.limit >= 0
    try:
        assert options.revision() >= -1
    except resource_version.ResourceVersionError as error:
        assert options.resource_version and str(error)


LABEL_SELECTORS = (b"a=b,c!=d", b"a in (b, 1),c notin (d),!e,f", b"x.example/y==z,a", b"c>3,c<9", b"")
FIELD_SELECTORS = (b"metadata.name=a,status.phase!=Running", b"a==b\\,c,d=\\\\e", b"=", b"")
TOKENS = (
    continue_token.encode(f"{PREFIX}a\0", PREFIX, 7).encode(),
    continue_token.encode(f"{PREFIX}b.c-d\0", PREFIX, -1).encode(),
    continue_token.encode(f"{PREFIX}\u00e9<\0", PREFIX, 1 << 40).encode(),
)
QUERIES = tuple(
    urlencode(each).encode()
    for each in (
        {"limit": "5", "continue": TOKENS[0], "labelSelector": "a in (b)", "fieldSelector": "metadata.name=x"},
        {"watch": "1", "resourceVersion": "5", "timeoutSeconds": "7", "allowWatchBookmarks": "true"},
        {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": "9", "resourceVersionMatch": "Exact", "limit": "-1"},
    )
)
