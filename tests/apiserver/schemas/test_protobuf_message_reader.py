"""The fast reader of messages against the slow one, for every message, as written and damaged."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.schemas.protobuf import ProtobufError, decoding, encoding, message_reader, table, wire
from tests.apiserver.schemas.protobuf_values import value_of

MESSAGES = table.messages()


def answer(read: Any, message: str, data: bytes) -> Any:
    try:
        return read(message, data)
    except ProtobufError:
        return ProtobufError


def test_every_message_is_read_as_the_slow_way_reads_it() -> None:
    for message in MESSAGES:
        written = encoding.encode_message(message, value_of(message, random.Random(message)))
        expected = decoding.decode_message(message, written)
        found = message_reader.read(message, written)
        assert found == expected, message
        if isinstance(expected, dict):
            assert list(found) == list(expected), message


@given(st.sampled_from(MESSAGES), st.integers(0, 2**32), st.integers(1, 3))
@settings(max_examples=400, deadline=None)
def test_damaged_messages_come_to_the_same(message: str, seed: int, changes: int) -> None:
    """Bytes are changed, added and cut off: both refuse it, or read the same."""
    rng = random.Random(seed)
    data = bytearray(encoding.encode_message(message, value_of(message, rng)))
    for _ in range(changes):
        if data:
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(2)] = rng.randbytes(rng.randrange(3))
    assert answer(message_reader.read, message, bytes(data)) == answer(decoding.decode_message, message, bytes(data))


def test_what_comes_twice_and_fields_of_newer_versions() -> None:
    pod = "k8s.io.api.core.v1.PodSpec"
    twice = b"\x1a\x01a" + b"\x1a\x01b" + b"\x1a\x00"
    newer = b"\xfa\x7f\x02xy" + b"\xf8\x7f\x05" + b"\xfd\x7f1234" + b"\xf9\x7f12345678"
    for data in (twice, newer, twice + newer, b"\x1a\x05a", b"\x00\x01", newer[:-1]):
        assert answer(message_reader.read, pod, data) == answer(decoding.decode_message, pod, data), data


@pytest.mark.parametrize("in_a_map", [False, True])
def test_messages_within_messages_have_a_bound(in_a_map: bool) -> None:
    schema, data = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", b""
    for _ in range(decoding.DEPTH_MAX + 2):
        if in_a_map:
            data = wire.with_length(b"\xea\x01", b"\x0a\x01a" + wire.with_length(b"\x12", data))
        else:
            data = wire.with_length(b"\xe2\x01", data)
    with pytest.raises(ProtobufError, match="max depth"):
        message_reader.read(schema, data)
