"""``/metrics`` of the client port next to a real etcd's: the same names, or a reason why not."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from storage import api
from storage.etcdpb import etcdserverpb as pb
from tests.storage.etcd_process import EtcdProcess
from tests.storage.etcdserver.door_fixture import client_of, running_door

ABSENT = {
    r"go_\w+|promhttp_\w+|etcd_server_go_version|os_fd_\w+": "of Go's runtime and libraries; process_* tell of descriptors",
    r"etcd_debugging_store_\w+": "of etcd's v2 store, which is not here",
    r"etcd_grpc_proxy_\w+": "of etcd's gRPC proxy, which is not here",
    r"etcd_debugging_auth_revision": "there are no users and roles",
    r"etcd_debugging_disk_backend_commit_(rebalance|spill|write)_duration_seconds": "steps of bbolt's commit; LMDB has one",
    r"etcd_debugging_lease_ttl_total": "a histogram that nobody's dashboards ask for",
    r"etcd_debugging_mvcc_(db|index)_compaction_(pause|total)_duration_milliseconds|etcd_debugging_mvcc_db_compaction_last": (
        "compaction runs in slices of the event loop, whose pauses etcd_server_apply_duration_seconds would show"
    ),
    r"etcd_debugging_mvcc_(range_total|total_put_size_in_bytes)": "debugging twins of etcd_mvcc_range_total and of the sizes",
    r"etcd_debugging_snap_save_\w+|etcd_snap_\w+": "this store's snapshots are markers in the log; nothing is saved",
    r"etcd_mvcc_db_open_read_transactions": "LMDB's readers hold nothing up that an operator could act on",
    r"etcd_server_heartbeat_send_failures_total": "peers' failures are in etcd_network_peer_sent_failures_total",
    r"etcd_server_learner_promote_successes": "seen in member list and in the log",
    r"process_virtual_memory_max_bytes": "prometheus-client does not tell it",
}
"""Names that etcd has and we deliberately have not, with the reason."""


def scrape(target: str) -> dict[str, str]:
    """Names of metrics and their types."""
    with urllib.request.urlopen(f"http://{target}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert list(text_string_to_metric_families(text)), "Prometheus reads it"
    return dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))


async def test_the_names_are_etcds(tmp_path: Path) -> None:
    with EtcdProcess(tmp_path / "etcd") as etcd:
        theirs = scrape(etcd.target)
    async with running_door(tmp_path / "ours") as door:
        ours = await asyncio.to_thread(scrape, door.target)
    absent = {name for name in theirs if any(re.fullmatch(pattern, name) for pattern in ABSENT)}
    assert not absent & ours.keys(), "what is here needs no excuse"
    assert {name: kind for name, kind in theirs.items() if name not in absent} == {
        name: kind for name, kind in ours.items() if name in theirs
    }


async def test_what_is_counted(tmp_path: Path) -> None:
    async with running_door(tmp_path) as door:
        async with client_of(door) as client:
            put = client.unary("/etcdserverpb.KV/Put")
            for number in range(3):
                await put(pb.PutRequest(key=b"k%d" % number, value=b"v"))
            with pytest.raises(Exception, match="key is not provided"):
                await put(pb.PutRequest())
            await client.unary("/etcdserverpb.KV/Range")(pb.RangeRequest(key=b"k0"), metadata=(("client-api-version", "3.5.1"),))
            await door.member.delete_range(api.DeleteRangeRequest(key=b"k", range_end=b"l"))
            lease = await door.member.lease_grant(60)
            await door.member.lease_keep_alive(lease.id)
            await door.member.hash_kv()
        found = {(family.name, labels): value for family in door.member.metric_families() for labels, value in family.samples}

        def count(name: str) -> object:
            return found[name, ()]

        puts = (("grpc_method", "Put"), ("grpc_service", "etcdserverpb.KV"), ("grpc_type", "unary"))
        assert found["grpc_server_started_total", puts] == 4
        assert found["grpc_server_handled_total", (("grpc_code", "OK"), *puts)] == 3
        assert found["grpc_server_handled_total", (("grpc_code", "InvalidArgument"), *puts)] == 1
        assert (count("etcd_mvcc_put_total"), count("etcd_mvcc_delete_total"), count("etcd_mvcc_range_total")) == (3, 1, 1)
        assert (count("etcd_mvcc_txn_total"), count("etcd_debugging_mvcc_events_total")) == (1, 6)
        assert (count("etcd_debugging_lease_granted_total"), count("etcd_debugging_lease_renewed_total")) == (1, 1)
        assert found["etcd_server_client_requests_total", (("client_api_version", "3.5.1"), ("type", "unary"))] == 1
        assert found["etcd_server_id", (("server_id", f"{door.member.member_id:x}"),)] == 1
        received = count("etcd_network_client_grpc_received_bytes_total")
        assert received == 3 * len(pb.PutRequest(key=b"k0", value=b"v").SerializeToString()) + 4
        assert found["etcd_mvcc_hash_rev_duration_seconds", ()].count == 1  # type: ignore[union-attr]
        assert count("etcd_disk_wal_write_bytes_total") > 0  # type: ignore[operator]
