"""The codec of the log's requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import api
from storage.maintenance import AlarmType
from storage.member import request
from storage.raft.codec import CodecError

ids = st.integers(0, (1 << 64) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
small = st.binary(max_size=20)
puts = st.builds(
    api.PutRequest, key=small, value=st.binary(max_size=300), lease=int64, prev_kv=st.booleans(), ignore_value=st.booleans(),
    ignore_lease=st.booleans(),
)  # fmt: skip
deletes = st.builds(api.DeleteRangeRequest, key=small, range_end=small, prev_kv=st.booleans())
ranges = st.builds(
    api.RangeRequest, key=small, range_end=small, limit=int64, revision=int64, sort_order=st.sampled_from(api.SortOrder),
    sort_target=st.sampled_from(api.SortTarget), serializable=st.booleans(), keys_only=st.booleans(), count_only=st.booleans(),
    min_mod_revision=int64, max_mod_revision=int64, min_create_revision=int64, max_create_revision=int64,
)  # fmt: skip
compares = st.sampled_from(api.CompareTarget).flatmap(
    lambda target: st.builds(
        api.Compare, key=small, target=st.just(target), result=st.sampled_from(api.CompareResult),
        operand=small if target is api.CompareTarget.VALUE else int64, range_end=small,
    )
)  # fmt: skip


def txns_of(operations: st.SearchStrategy[api.Op]) -> st.SearchStrategy[api.TxnRequest]:
    branch = st.lists(operations, max_size=3).map(tuple)
    return st.builds(api.TxnRequest, compare=st.lists(compares, max_size=2).map(tuple), success=branch, failure=branch)


txns = txns_of(st.recursive(st.one_of(puts, deletes, ranges), txns_of, max_leaves=5))
requests = st.one_of(
    puts,
    deletes,
    txns,
    st.builds(request.CompactionRequest, revision=int64, physical=st.booleans()),
    st.builds(request.LeaseGrantRequest, id=int64, ttl_seconds=int64),
    st.builds(request.LeaseRevokeRequest, id=int64),
    st.builds(request.AlarmRequest, action=st.sampled_from(request.AlarmAction), member_id=ids, alarm=st.sampled_from(AlarmType)),
    st.builds(
        request.LeaseCheckpointRequest,
        remaining_ttl_seconds=st.lists(st.tuples(int64, st.integers(0, 1 << 40)), max_size=4).map(tuple),
    ),
)


@given(ids, requests)
def test_requests_come_back(request_id: int, one: request.InternalRequest) -> None:
    data = request.encode(request_id, one)
    assert request.request_id_of(data) == request_id
    assert request.decode(data) == (request_id, one)


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused_with_one_error(data: bytes) -> None:
    try:
        request.decode(data)
    except CodecError:
        return


def test_bodies_are_etcd_messages() -> None:
    put = api.PutRequest(key=b"k", value=b"v", lease=5)
    assert request.encode(1, put) == bytes.fromhex("0000000000000001040a016b1201761805")
    txn = api.TxnRequest(
        compare=(api.Compare(key=b"k", target=api.CompareTarget.MOD, operand=0),), success=(api.DeleteRangeRequest(key=b"k"),)
    )
    assert request.encode(1, txn)[9:] == bytes.fromhex("0a09080010021a016b300012051a030a016b")


def test_fields_of_a_newer_version_are_skipped_and_kinds_are_not() -> None:
    put = api.PutRequest(key=b"k", value=b"v")
    assert request.decode(request.encode(1, put) + bytes.fromhex("980601"))[1] == put
    with pytest.raises(request.UnknownRequestError):
        request.decode(bytes(8) + b"\x63" + b"abc")
    with pytest.raises(request.UnknownRequestError):
        request.decode(bytes(8) + bytes([request.Kind.TXN]) + bytes.fromhex("12024a00"))
