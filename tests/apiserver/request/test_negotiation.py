"""Which form a client gets; the facts of Accept headers are a real server's."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.status import StatusError
from apiserver.request import negotiation
from apiserver.request.negotiation import JSON, PROTOBUF, YAML, Form, negotiate, of_status
from tests.apiserver.api import Api

#: ``answers[header][target]`` is [code, type, kind of the answer or number of its text]; a target that answers as ``get`` does is left
#: out. Recorded from kube-apiserver 1.20; ``custom-…`` are of a custom resource, ``scale`` is a Deployment's, ``group`` is ``/apis/apps``.
RECORDED: dict[str, Any] = orjson.loads((Path(__file__).parent / "accept-headers-1.20.json").read_bytes())
TEXTS, ANSWERS = RECORDED["texts"], RECORDED["answers"]
TYPES = {"json": JSON, "yaml": YAML, "protobuf": PROTOBUF, "protobuf;stream=watch": f"{PROTOBUF};stream=watch"}


def chosen(accept: str, **more: Any) -> tuple[str, Form]:
    found = negotiate({b"accept": accept.encode("latin-1")}, {}, **more)
    return found.media_type, found.form


def expected_of(accept: str, target: str) -> list[Any]:
    of_accept = ANSWERS[accept]
    default = of_accept["custom-get"] if target.startswith("custom") else of_accept["get"]
    return list(of_accept.get(target, default))


@pytest.mark.parametrize("target", ["get", "list", "watch", "custom-get", "custom-list"])
@pytest.mark.parametrize("accept", ANSWERS)
def test_every_header_is_answered_as_a_real_server_answered_it(accept: str, target: str) -> None:
    code, media_type, *what = expected_of(accept, target)
    custom, watch = target.startswith("custom"), target == "watch"
    more = {"list_of_objects": target.endswith("list"), "watch": watch, "builtin": not custom, "protobuf": not custom}
    text = TEXTS[what[0]] if code != 200 else ""
    if text.startswith(("you requested", "content is not a list")):  # it is refused once there is an object
        form = chosen(accept, **more)[1]
        assert form in (Form.METADATA, Form.METADATA_LIST)
        return
    if code == 200:
        found, form = chosen(accept, **more)
        assert found == TYPES[media_type].removesuffix(";stream=watch")
        if not watch:
            assert form is (Form(what[0]) if what else Form.OBJECT)
        return
    with pytest.raises(StatusError) as refused:
        chosen(accept, **more)
    assert refused.value.code == 406
    assert in_our_words(text, refused.value.message)
    assert of_status({b"accept": accept.encode()}, {}).media_type == TYPES[media_type]


def in_our_words(theirs: str, ours: str) -> bool:
    """Where the router in front of a real server says nothing but the code, the types are told (field case U2)."""
    if theirs == "406: Not Acceptable":
        return ours.startswith("only the following media types are accepted: application/json")
    return ours == theirs


async def test_answers_carry_the_type_that_was_chosen(api: Api) -> None:
    paths = {"get": "/api/v1/namespaces/default", "list": "/api/v1/namespaces", "missing": "/api/v1/namespaces/nothing-here"}
    for accept, (target, path) in product(ANSWERS, paths.items()):
        code, media_type, *what = expected_of(accept, target)
        answer = await api.get(path, headers={"accept": accept})
        if target == "missing" and "missing" not in ANSWERS[accept]:
            code = 404
        assert answer.status == code, (accept, target)
        assert answer.headers["content-type"] == [TYPES[media_type]], (accept, target)
        if code == 406 and media_type == "json":
            assert in_our_words(TEXTS[what[0]], answer.message), (accept, target)


def test_what_the_router_knows_is_told() -> None:
    with pytest.raises(StatusError) as refused:
        negotiate({b"accept": b"text/html"}, {})
    assert refused.value.message == f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}"
    assert refused.value.status["details"] == {}
    with pytest.raises(StatusError) as refused:
        negotiate({b"accept": b"text/html"}, {}, list_of_objects=True)
    assert refused.value.message.endswith(f"{PROTOBUF}, {JSON};stream=watch, {PROTOBUF};stream=watch")


@given(st.text(st.characters(max_codepoint=255), max_size=80), st.booleans(), st.booleans())
def test_any_header_has_a_form_or_is_refused(accept: str, watch: bool, builtin: bool) -> None:
    headers = {b"accept": accept.encode("latin-1")}
    assert of_status(headers, {}).form is Form.OBJECT
    try:
        found = negotiate(headers, {}, watch=watch, builtin=builtin, protobuf=builtin)
    except StatusError as error:
        assert error.code == 406
    else:
        assert found.media_type in (JSON, YAML, PROTOBUF)


def test_people_get_indented_answers() -> None:
    curl = {b"user-agent": b"curl/8.0"}
    assert negotiate(curl, {}).pretty
    assert not negotiate(curl, {"pretty": ["false"]}).pretty
    assert not negotiate(curl, {}, watch=True).pretty
    assert negotiate(curl, {"pretty": [""]}).pretty
    assert negotiate({}, {"pretty": ["1"]}).pretty
    assert not negotiate({}, {"pretty": ["yes"]}).pretty
    assert negotiate({b"accept": b"application/json;pretty=1"}, {}).pretty
    assert not negotiate({b"accept": b"application/yaml", **curl}, {}).pretty
    assert of_status(curl, {}).pretty
    assert not of_status({}, {}).pretty


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", JSON),
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("application/yaml", YAML),
        (f"{PROTOBUF}; a=b", PROTOBUF),
        ("application/json;", JSON),
        ("application/json;garbage", None),
        ("text/plain", None),
        ("application/cbor", None),
        ("application/*", None),
        (";", None),
    ],
)
def test_types_of_bodies(value: str, expected: str | None) -> None:
    headers = {b"content-type": value.encode()} if value else {}
    if expected is not None:
        assert negotiation.body_type(headers) == expected
        return
    with pytest.raises(StatusError) as refused:
        negotiation.body_type(headers)
    assert refused.value.code == 415
    assert refused.value.message == (
        f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}, {PROTOBUF}"
    )


def test_patch_types() -> None:
    for kind in negotiation.PATCH_TYPES:
        assert negotiation.patch_type({b"content-type": kind.encode() + b"; charset=utf-8"}, builtin=True) == kind
    with pytest.raises(StatusError) as refused:
        negotiation.patch_type({b"content-type": b"application/strategic-merge-patch+json"}, builtin=False)
    assert refused.value.code == 415
    assert "strategic" not in refused.value.message
    with pytest.raises(StatusError) as refused:
        negotiation.patch_type({b"content-type": b"application/json"}, builtin=True)
    assert refused.value.message.endswith(f"accepted media types include: {', '.join(negotiation.PATCH_TYPES)}")
