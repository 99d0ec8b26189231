"""KeyValue records: every value survives, and only CorruptError comes of anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import api
from storage.errors import CorruptError
from storage.mvcc import kv_codec

int64 = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 1 << 22)
kvs = st.builds(
    api.KeyValue,
    key=st.binary(max_size=300),
    create_revision=int64,
    mod_revision=int64,
    version=int64,
    value=st.binary(max_size=300),
    lease=int64,
)


@given(kvs)
def test_what_was_encoded_is_decoded(kv: api.KeyValue) -> None:
    data = kv_codec.encode(kv)
    assert kv_codec.decode(data) == kv
    assert kv_codec.decode_key(data) == kv.key
    without = kv_codec.decode(data, with_value=False)
    assert (without.key, without.value, without.lease) == (kv.key, b"", kv.lease)


@given(kvs, st.randoms(use_true_random=False))
def test_fields_may_come_in_any_order_with_unknown_ones_between(kv: api.KeyValue, rng: object) -> None:
    zeros = api.KeyValue(b"", 0, 0, 0, b"", 0)
    parts = [kv_codec.encode(_with(zeros, name, getattr(kv, name))) for name in zeros.__slots__]
    parts += [b"\x3a\x03abc", b"\x40\x05", b"\x4d1234", b"\x5112345678"]
    rng.shuffle(parts)  # type: ignore[attr-defined]
    assert kv_codec.decode(b"".join(parts)) == kv
    assert kv_codec.decode_key(b"".join(parts)) == kv.key


@given(kvs, st.data())
def test_a_record_cut_short_is_corrupt_or_a_record(kv: api.KeyValue, data: st.DataObject) -> None:
    encoded = kv_codec.encode(kv)
    cut = encoded[: data.draw(st.integers(0, len(encoded)))]
    try:
        decoded = kv_codec.decode(cut)
    except CorruptError:
        return
    # A cut between two fields leaves a message that has fewer; it is not what the encoder writes, but it means one thing only.
    assert kv_codec.decode(kv_codec.encode(decoded)) == decoded


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_are_corrupt(data: bytes) -> None:
    try:
        kv_codec.decode(data)
        kv_codec.decode_key(data)
    except CorruptError:
        pass


def test_the_bytes_are_protobuf() -> None:
    kv = api.KeyValue(b"foo", 2, 300, 4, b"bar", 150)
    assert kv_codec.encode(kv) == b"\x0a\x03foo" + b"\x10\x02" + b"\x18\xac\x02" + b"\x20\x04" + b"\x2a\x03bar" + b"\x30\x96\x01"
    assert kv_codec.encode(api.KeyValue(b"k", 0, 0, 0, b"", -1)) == b"\x0a\x01k\x30" + b"\xff" * 9 + b"\x01"


def test_a_wire_type_that_does_not_exist_is_corrupt() -> None:
    with pytest.raises(CorruptError):
        kv_codec.decode(b"\x0b")


def _with(kv: api.KeyValue, name: str, value: object) -> api.KeyValue:
    fields = {slot: getattr(kv, slot) for slot in kv.__slots__}
    return api.KeyValue(**{**fields, name: value})
