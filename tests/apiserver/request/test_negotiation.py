"""Which form a client gets."""

from __future__ import annotations

import pytest

from apiserver.machinery.status import StatusError
from apiserver.request import negotiation
from apiserver.request.negotiation import JSON, PROTOBUF, YAML, Form, negotiate

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "of_list", "expected"),
    [
        ("", False, (JSON, Form.OBJECT)),
        ("*/*", False, (JSON, Form.OBJECT)),
        ("application/*", False, (JSON, Form.OBJECT)),
        ("application/yaml", False, (YAML, Form.OBJECT)),
        (f"{PROTOBUF},application/json", False, (JSON, Form.OBJECT)),
        (f"{TABLE},application/json", True, (JSON, Form.TABLE)),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", True, (JSON, Form.OBJECT)),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", True, (JSON, Form.METADATA_LIST)),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", False, (JSON, Form.METADATA)),
        ("text/html, */*;q=0.8", False, (JSON, Form.OBJECT)),
        ("application/json;q=0.2, application/yaml;q=0.9", False, (YAML, Form.OBJECT)),
        ("application/json;q=0, application/yaml", False, (YAML, Form.OBJECT)),
        ("Application/JSON ; Q=0.5", False, (JSON, Form.OBJECT)),
    ],
)
def test_the_best_clause_that_can_be_served(accept: str, of_list: bool, expected: tuple[str, Form]) -> None:
    found = negotiate({b"accept": accept.encode()}, {}, list_of_objects=of_list)
    assert (found.media_type, found.form) == expected


@pytest.mark.parametrize("accept", ["text/html", "text/csv", PROTOBUF, "application/json;q=0", ",,;;", "\xff"])
def test_nothing_that_can_be_served(accept: str) -> None:
    with pytest.raises(StatusError) as refused:
        negotiate({b"accept": accept.encode("latin-1")}, {}, list_of_objects=False)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")


def test_people_get_indented_answers() -> None:
    curl = {b"user-agent": b"curl/8.0"}
    assert negotiate(curl, {}, list_of_objects=False).pretty
    assert not negotiate(curl, {"pretty": ["false"]}, list_of_objects=False).pretty
    assert not negotiate(curl, {}, list_of_objects=False, watch=True).pretty
    assert negotiate({}, {"pretty": ["1"]}, list_of_objects=False).pretty


def test_a_watch_is_never_yaml() -> None:
    with pytest.raises(StatusError):
        negotiate({b"accept": b"application/yaml"}, {}, list_of_objects=False, watch=True)


def test_patch_types() -> None:
    for kind in negotiation.PATCH_TYPES:
        assert negotiation.patch_type({b"content-type": kind.encode() + b"; charset=utf-8"}, strategic=True) == kind
    with pytest.raises(StatusError) as refused:
        negotiation.patch_type({b"content-type": b"application/strategic-merge-patch+json"}, strategic=False)
    assert refused.value.code == 415
    assert "strategic" not in refused.value.message
