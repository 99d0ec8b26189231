"""Bytes of the Raft values: protobuf as etcd's raftpb lays it out."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.raft import codec
from storage.raft.messages import (
    ConfChange,
    ConfChangeSingle,
    ConfChangeTransition,
    ConfChangeType,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
    Snapshot,
    SnapshotMetadata,
)

numbers = st.integers(0, (1 << 64) - 1)
ids = st.lists(numbers, max_size=4).map(tuple)
entries = st.builds(Entry, numbers, numbers, st.binary(max_size=40), st.sampled_from(EntryType))
conf_states = st.builds(ConfState, ids, ids, ids, ids, st.booleans())
metadatas = st.builds(SnapshotMetadata, conf_states, numbers, numbers)
snapshots = st.builds(Snapshot, st.binary(max_size=20), metadatas)
conf_changes = st.builds(ConfChange, st.sampled_from(ConfChangeType), numbers, st.binary(max_size=20), numbers)
singles = st.builds(ConfChangeSingle, st.sampled_from(ConfChangeType), numbers)
conf_changes_v2 = st.builds(
    ConfChangeV2, st.lists(singles, max_size=4).map(tuple), st.sampled_from(ConfChangeTransition), st.binary(max_size=20)
)
messages = st.builds(
    Message,
    type=st.sampled_from(MessageType),
    to=numbers,
    sender=numbers,
    term=numbers,
    log_term=numbers,
    index=numbers,
    entries=st.lists(entries, max_size=3).map(tuple),
    commit=numbers,
    vote=numbers,
    snapshot=st.none() | snapshots,
    reject=st.booleans(),
    reject_hint=numbers,
    context=st.binary(max_size=10),
)


def test_known_bytes_of_raftpb() -> None:
    assert codec.encode_entry(Entry(2, 300, b"hi")) == bytes.fromhex("0800100218ac0222026869")
    assert codec.encode_hard_state(HardState(3, 1, 7)) == bytes.fromhex("080310011807")
    assert codec.encode_conf_state(ConfState((1, 2), (3,))) == bytes.fromhex("080108021003")
    assert codec.encode_conf_change(ConfChange(ConfChangeType.REMOVE_NODE, 2, b"x", 9)) == bytes.fromhex("080910011802220178")
    change = ConfChangeV2((ConfChangeSingle(ConfChangeType.ADD_LEARNER_NODE, 5),), ConfChangeTransition.JOINT_EXPLICIT, b"x")
    assert codec.encode_conf_change_v2(change) == bytes.fromhex("08021204080310051a0178")
    assert codec.encode_conf_change_v2(ConfChangeV2()) == b""  # never refused for its size


@given(conf_changes | conf_changes_v2)
def test_configuration_changes_come_back_from_their_entries(change: ConfChange | ConfChangeV2) -> None:
    data, kind = codec.conf_change_proposal(change)
    assert codec.decode_conf_change_entry(Entry(1, 1, data, kind)) == change


@given(st.binary(max_size=30), st.sampled_from([EntryType.CONF_CHANGE, EntryType.CONF_CHANGE_V2]))
def test_what_is_no_configuration_change_is_an_error(data: bytes, kind: EntryType) -> None:
    with contextlib.suppress(codec.CodecError):
        codec.decode_conf_change_entry(Entry(1, 1, data, kind))


@given(entries)
def test_entries_come_back(entry: Entry) -> None:
    assert codec.decode_entry(codec.encode_entry(entry)) == entry


def test_entries_are_read_in_any_order_of_fields_and_with_fields_left_out() -> None:
    assert codec.decode_entry(bytes.fromhex("2202686918ac0210020801")) == Entry(2, 300, b"hi", EntryType.CONF_CHANGE)
    assert codec.decode_entry(bytes.fromhex("18011002")) == Entry(2, 1)
    assert codec.decode_entry(b"") == Entry(0, 0)
    assert codec.decode_entry(codec.encode_entry(Entry(2, 300, b"hi")) + bytes.fromhex("2801")) == Entry(2, 300, b"hi")


@given(numbers, numbers, numbers)
def test_hard_states_come_back(term: int, vote: int, commit: int) -> None:
    assert codec.decode_hard_state(codec.encode_hard_state(HardState(term, vote, commit))) == HardState(term, vote, commit)


@given(messages)
def test_messages_come_back(message: Message) -> None:
    assert codec.decode_message(codec.encode_message(message)) == message


@given(metadatas)
def test_snapshot_metadata_comes_back(metadata: SnapshotMetadata) -> None:
    assert codec.decode_snapshot_metadata(codec.encode_snapshot_metadata(metadata)) == metadata


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused_with_one_error(data: bytes) -> None:
    for decode in (codec.decode_entry, codec.decode_hard_state, codec.decode_conf_state, codec.decode_snapshot, codec.decode_message):
        with contextlib.suppress(codec.CodecError):
            decode(data)


def test_unknown_fields_are_skipped() -> None:
    newer = codec.encode_hard_state(HardState(3, 1, 7)) + bytes.fromhex("f80105") + bytes.fromhex("fa01026869")
    assert codec.decode_hard_state(newer) == HardState(3, 1, 7)


@pytest.mark.parametrize("data", ["08", "2205", "ffffffffffffffffffffff01", "0b"])
def test_broken_bytes_are_refused(data: str) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode_entry(bytes.fromhex(data))
