"""The protocol table, asked of a real etcd: it understands what we send, and we know every field that it answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from storage.etcdpb import etcdserverpb, mvccpb, packages, services, table
from tests.storage.etcd_process import EtcdProcess

CALL_SECONDS_MAX = 10.0

Call = Callable[[str, Any], Any]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """One call of a method by path; the answer of a streaming method is its iterator."""
    with EtcdProcess(tmp_path_factory.mktemp("etcd") / "data") as process, grpc.insecure_channel(process.target) as channel:

        def call(path: str, request: Any) -> Any:
            method = services.methods()[path]
            kind = {(False, False): "unary_unary", (False, True): "unary_stream", (True, True): "stream_stream"}
            stub = getattr(channel, kind[method.client_streaming, method.server_streaming])(
                path, request_serializer=method.request_class.SerializeToString, response_deserializer=method.response_class.FromString
            )
            return stub(iter([request]) if method.client_streaming else request, timeout=CALL_SECONDS_MAX)

        yield call


def unknown_fields(message: Any) -> list[str]:
    """Where in a message there are fields that its class does not know."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = [f"{message.DESCRIPTOR.full_name}.{field.field_number}" for field in UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                found += unknown_fields(inner)
    return found


def known(message: Any) -> Any:
    assert unknown_fields(message) == []
    assert type(message).FromString(message.SerializeToString()) == message
    return message


def test_unknown_fields_are_found() -> None:
    foreign = etcdserverpb.StatusResponse(version="3.5.1").SerializeToString() + b"\xf8\x07\x01"
    assert unknown_fields(etcdserverpb.StatusResponse.FromString(foreign)) == ["etcdserverpb.StatusResponse.127"]


def test_a_transaction_with_every_kind_of_part(etcd: Call) -> None:
    put = etcdserverpb.PutRequest(key=b"txn/a", value=b"1")
    first = known(etcd("/etcdserverpb.KV/Put", put))
    compare = etcdserverpb.Compare(
        key=b"txn/",
        range_end=b"txn0",
        target=etcdserverpb.Compare.MOD,
        mod_revision=first.header.revision,
        result=etcdserverpb.Compare.EQUAL,
    )
    nested = etcdserverpb.TxnRequest(success=[etcdserverpb.RequestOp(request_range=etcdserverpb.RangeRequest(key=b"txn/a"))])
    request = etcdserverpb.TxnRequest(
        compare=[compare],
        success=[
            etcdserverpb.RequestOp(request_put=etcdserverpb.PutRequest(key=b"txn/a", value=b"2", prev_kv=True)),
            etcdserverpb.RequestOp(request_txn=nested),
            etcdserverpb.RequestOp(request_delete_range=etcdserverpb.DeleteRangeRequest(key=b"txn/b", prev_kv=True)),
        ],
    )
    answer = known(etcd("/etcdserverpb.KV/Txn", request))
    assert answer.succeeded
    assert [part.WhichOneof("response") for part in answer.responses] == ["response_put", "response_txn", "response_delete_range"]
    assert answer.responses[0].response_put.prev_kv.value == b"1"
    assert answer.responses[1].response_txn.responses[0].response_range.kvs[0] == mvccpb.KeyValue(
        key=b"txn/a", create_revision=first.header.revision, mod_revision=answer.header.revision, version=2, value=b"2"
    )
    deleted = known(etcd("/etcdserverpb.KV/DeleteRange", etcdserverpb.DeleteRangeRequest(key=b"txn/a", prev_kv=True)))
    assert (deleted.deleted, deleted.prev_kvs[0].version) == (1, 2)


def test_ranges_take_every_option(etcd: Call) -> None:
    for key in (b"range/a", b"range/b", b"range/c"):
        etcd("/etcdserverpb.KV/Put", etcdserverpb.PutRequest(key=key, value=b"v"))
    request = etcdserverpb.RangeRequest(
        key=b"range/",
        range_end=b"range0",
        limit=1,
        sort_order=etcdserverpb.RangeRequest.DESCEND,
        sort_target=etcdserverpb.RangeRequest.MOD,
        serializable=True,
        keys_only=True,
    )
    answer = known(etcd("/etcdserverpb.KV/Range", request))
    assert ([kv.key for kv in answer.kvs], answer.more, answer.count, answer.kvs[0].value) == ([b"range/c"], True, 3, b"")


def test_watches_leases_and_the_cluster(etcd: Call) -> None:
    lease = known(etcd("/etcdserverpb.Lease/LeaseGrant", etcdserverpb.LeaseGrantRequest(TTL=600, ID=77)))
    assert (lease.ID, lease.TTL, lease.error) == (77, 600, "")
    put = etcd("/etcdserverpb.KV/Put", etcdserverpb.PutRequest(key=b"leased", value=b"v", lease=77))
    left = known(etcd("/etcdserverpb.Lease/LeaseTimeToLive", etcdserverpb.LeaseTimeToLiveRequest(ID=77, keys=True)))
    assert (left.grantedTTL, list(left.keys)) == (600, [b"leased"])
    alive = known(next(etcd("/etcdserverpb.Lease/LeaseKeepAlive", etcdserverpb.LeaseKeepAliveRequest(ID=77))))
    assert (alive.ID, alive.TTL) == (77, 600)
    assert [one.ID for one in known(etcd("/etcdserverpb.Lease/LeaseLeases", etcdserverpb.LeaseLeasesRequest())).leases] == [77]

    create = etcdserverpb.WatchCreateRequest(key=b"leased", start_revision=put.header.revision, prev_kv=True, watch_id=5, fragment=True)
    stream = etcd("/etcdserverpb.Watch/Watch", etcdserverpb.WatchRequest(create_request=create))
    created, events = known(next(stream)), known(next(stream))
    stream.cancel()
    assert (created.created, created.watch_id) == (True, 5)
    assert [(event.type, event.kv.key, event.kv.lease) for event in events.events] == [(mvccpb.Event.PUT, b"leased", 77)]
    known(etcd("/etcdserverpb.Lease/LeaseRevoke", etcdserverpb.LeaseRevokeRequest(ID=77)))

    (member,) = known(etcd("/etcdserverpb.Cluster/MemberList", etcdserverpb.MemberListRequest(linearizable=True))).members
    assert (member.name, len(member.peerURLs), len(member.clientURLs), member.isLearner) == ("default", 1, 1, False)


def test_maintenance_answers(etcd: Call) -> None:
    status = known(etcd("/etcdserverpb.Maintenance/Status", etcdserverpb.StatusRequest()))
    assert status.version.startswith("3.")
    assert status.leader == status.header.member_id
    assert status.dbSize >= status.dbSizeInUse > 0
    raised = etcdserverpb.AlarmRequest(action=etcdserverpb.AlarmRequest.ACTIVATE, memberID=7, alarm=etcdserverpb.AlarmType.CORRUPT)
    known(etcd("/etcdserverpb.Maintenance/Alarm", raised))
    told = known(etcd("/etcdserverpb.Maintenance/Alarm", etcdserverpb.AlarmRequest(action=etcdserverpb.AlarmRequest.GET)))
    assert [(one.memberID, one.alarm) for one in told.alarms] == [(7, etcdserverpb.AlarmType.CORRUPT)]
    raised.action = etcdserverpb.AlarmRequest.DEACTIVATE
    known(etcd("/etcdserverpb.Maintenance/Alarm", raised))
    hashed = known(etcd("/etcdserverpb.Maintenance/HashKV", etcdserverpb.HashKVRequest()))
    assert hashed.hash > 0
    parts = [known(part) for part in etcd("/etcdserverpb.Maintenance/Snapshot", etcdserverpb.SnapshotRequest())]
    assert parts[-1].remaining_bytes == 0
    assert sum(len(part.blob) for part in parts) > 32
    assert not known(etcd("/etcdserverpb.Auth/AuthStatus", etcdserverpb.AuthStatusRequest())).enabled


def test_election_and_lock(etcd: Call) -> None:
    from storage.etcdpb import v3electionpb, v3lockpb

    lease = etcd("/etcdserverpb.Lease/LeaseGrant", etcdserverpb.LeaseGrantRequest(TTL=60)).ID
    won = known(etcd("/v3electionpb.Election/Campaign", v3electionpb.CampaignRequest(name=b"e", lease=lease, value=b"me")))
    assert (won.leader.name, won.leader.lease) == (b"e", lease)
    leader = known(etcd("/v3electionpb.Election/Leader", v3electionpb.LeaderRequest(name=b"e")))
    assert (leader.kv.key, leader.kv.value) == (won.leader.key, b"me")
    known(etcd("/v3electionpb.Election/Resign", v3electionpb.ResignRequest(leader=won.leader)))
    locked = known(etcd("/v3lockpb.Lock/Lock", v3lockpb.LockRequest(name=b"l", lease=lease)))
    assert locked.key.startswith(b"l/")
    known(etcd("/v3lockpb.Lock/Unlock", v3lockpb.UnlockRequest(key=locked.key)))


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(AttributeError, match="protobuf package etcdserverpb has no Rnage"):
        _ = etcdserverpb.Rnage


def test_every_message_of_the_table_is_made_and_no_number_is_given_twice() -> None:
    for file in table.FILES:
        package = packages.Package(file.package)
        for message in file.messages:
            made = getattr(package, message.name)
            assert len({field.number for field in message.fields}) == len(message.fields) == len(made.DESCRIPTOR.fields)
            assert [field.name for field in made.DESCRIPTOR.fields] == [field.name for field in message.fields]


def test_importing_the_messages_loads_neither_protobuf_nor_grpc() -> None:
    program = "import sys, storage.etcdpb, storage.etcdpb.services; print([n for n in ('google.protobuf', 'grpc') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert done.stdout.strip() == "[]"
