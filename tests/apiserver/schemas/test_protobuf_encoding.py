"""Objects written as protobuf: for every published message, and to the byte for what a real cluster has stored."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.schemas import protobuf, published
from apiserver.schemas.protobuf import decoding, encoding, table
from tests.apiserver.schemas.protobuf_values import value_of

MESSAGES = table.messages()


def said(value: Any) -> Any:
    """What a value says beyond zeros ("0" is that of a quantity) and empty things, which JSON may leave out."""
    if isinstance(value, dict):
        return {k: v for k, v in ((k, said(v)) for k, v in value.items()) if v not in (None, {}, [], "", "0", 0, False)}
    return [said(item) for item in value] if isinstance(value, list) else value


def check_round_trip(message: str, rng: random.Random) -> None:
    value = value_of(message, rng)
    written = encoding.encode_message(message, value)
    read = decoding.decode_message(message, written)
    assert said(read) == said(value), message
    # nothing is lost on the way, not even which zeros are there
    assert encoding.encode_message(message, read) == written, message


def test_every_message_goes_there_and_back() -> None:
    assert len(MESSAGES) > 1500
    for message in MESSAGES:
        check_round_trip(message, random.Random(message))


@given(st.sampled_from(MESSAGES), st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_any_value_of_a_message_goes_there_and_back(message: str, seed: int) -> None:
    check_round_trip(message, random.Random(seed))


def json_names(message: str) -> set[str]:
    """Of all that stands in a message's JSON, what is inlined among it."""
    fields = table.fields_of(message)
    own = {field.name for field in fields if not field.inline}
    return own.union(*(json_names(field.type) for field in fields if field.inline))


def test_every_published_field_of_an_object_has_its_place_in_the_message() -> None:
    """The schemas and the messages are published apart."""
    missing, compared = {}, 0
    for name, schema in published.read_definitions("1.36").items():
        message = name.replace("io.k8s.", "k8s.io.", 1).replace("-", "_")
        properties = set(schema.get("properties", ())) - {"apiVersion", "kind"}
        if properties and table.is_published(message):
            compared += 1
            if lost := properties - json_names(message):
                missing[name] = lost
    assert missing == {} and compared > 700


def test_every_message_of_a_list_has_one_of_its_item() -> None:
    """The bytes of a list are those of its items: all built-in lists are metadata and items, in this order."""
    for message in MESSAGES:
        fields = {field.name: field for field in table.fields_of(message)}
        if (
            message.endswith("List")
            and message.startswith("k8s.io.api")
            and ".meta." not in message
            and set(fields) == {"metadata", "items"}
        ):
            assert fields["metadata"].number == 1, message
            assert (fields["items"].number, fields["items"].repeated) == (2, True), message
            assert fields["metadata"].type == table.META + "ListMeta", message


def test_the_bytes_of_a_small_object() -> None:
    """Written out: what cannot be nil is there though it is zero, the creation time as an empty message."""
    written = protobuf.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"b": "2", "a": "1"}})
    metadata = b"\x0a\x01c" + b"\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00"
    message = b"\x0a\x11" + metadata + b"\x12\x06\x0a\x01a\x12\x011" + b"\x12\x06\x0a\x01b\x12\x012"
    assert written == b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x23" + message + b"\x1a\x00\x22\x00"


def test_a_pointer_to_zero_is_written_and_none_is_not() -> None:
    message = "k8s.io.api.apps.v1.DeploymentSpec"
    assert decoding.decode_message(message, encoding.encode_message(message, {"replicas": 0}))["replicas"] == 0
    assert "replicas" not in decoding.decode_message(message, encoding.encode_message(message, {"replicas": None}))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"additionalProperties": {"type": "string"}}, {"additionalProperties": {"type": "string"}}),
        ({"items": {"type": "string"}}, {"items": {"type": "string"}}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"default": {"a": 1.5}}, {"default": {"a": 1.5}}),
    ],
)
def test_one_ofs_of_schemas(value: dict[str, Any], expected: dict[str, Any]) -> None:
    message = f"{table.EXTENSIONS}v1.JSONSchemaProps"
    assert decoding.decode_message(message, encoding.encode_message(message, value)) == expected


@pytest.mark.parametrize(
    ("api_version", "kind", "published"),
    [
        ("v1", "Pod", True),
        ("apps/v1", "DeploymentList", True),
        ("v1", "Status", True),
        ("meta.k8s.io/v1", "PartialObjectMetadataList", True),
        ("apiregistration.k8s.io/v1", "APIService", True),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", True),
        ("meta.k8s.io/v1", "Table", False),
        ("core.example.com/v1", "Pod", False),
        ("example.com/v1", "Pod", False),
        ("v1", "Nothing", False),
    ],
)
def test_which_kinds_have_a_message(api_version: str, kind: str, published: bool) -> None:
    assert (protobuf.message_of(api_version, kind) is not None) is published


@pytest.mark.parametrize(
    "spec",
    [{"replicas": "many"}, {"replicas": 1.5}, {"replicas": 2**64}, {"paused": "yes"}, {"selector": 3}, {"template": []}],
)
def test_values_of_another_type_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(protobuf.ProtobufError):
        protobuf.encode({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
