"""The lock and election services: the same calls to a real etcd and to the door give the same answers; waiting and giving up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from storage.etcdpb import etcdserverpb as pb
from storage.etcdpb import v3electionpb, v3lockpb
from tests.storage.etcd_process import EtcdProcess
from tests.storage.etcdserver.door_fixture import Client, client_of, running_door

LOCK, UNLOCK = "/v3lockpb.Lock/Lock", "/v3lockpb.Lock/Unlock"
ELECTION = "/v3electionpb.Election/"


@pytest.fixture(params=["etcd", "ours"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    if request.param == "etcd":
        with EtcdProcess(tmp_path / "etcd") as etcd:
            async with grpc.aio.insecure_channel(etcd.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                yield Client(channel)
    else:
        async with running_door(tmp_path / "ours") as door, client_of(door) as made:
            yield made


async def lease(client: Client, number: int) -> int:
    await client.unary("/etcdserverpb.Lease/LeaseGrant")(pb.LeaseGrantRequest(ID=number, TTL=600))
    return number


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details()


async def keys(client: Client, prefix: bytes) -> list[bytes]:
    answer = await client.unary("/etcdserverpb.KV/Range")(pb.RangeRequest(key=prefix, range_end=prefix[:-1] + b"0", keys_only=True))
    return [kv.key for kv in answer.kvs]


async def settled(client: Client, prefix: bytes, wanted: list[bytes]) -> None:
    """What a call that was given up leaves behind goes a little later."""
    for _ in range(2000):
        if await keys(client, prefix) == wanted:
            return
        await asyncio.sleep(0.005)
    assert await keys(client, prefix) == wanted


async def test_a_lock_is_held_by_one_and_handed_on_in_order(client: Client) -> None:
    lock, unlock = client.unary(LOCK), client.unary(UNLOCK)
    for number in (1, 2, 3):
        await lease(client, number)
    first = await lock(v3lockpb.LockRequest(name=b"l", lease=1))
    assert (first.key, first.header.revision) == (b"l/1", 2)
    assert (await lock(v3lockpb.LockRequest(name=b"l", lease=1))).key == b"l/1", "who holds it has it at once"
    second = asyncio.ensure_future(lock(v3lockpb.LockRequest(name=b"l", lease=2)))
    await settled(client, b"l/", [b"l/1", b"l/2"])
    third = asyncio.ensure_future(lock(v3lockpb.LockRequest(name=b"l", lease=3)))
    await settled(client, b"l/", [b"l/1", b"l/2", b"l/3"])
    assert not second.done() and not third.done()
    await unlock(v3lockpb.UnlockRequest(key=b"l/1"))
    assert (await second).key == b"l/2" and not third.done()
    # the lease of the holder goes, and the lock with it
    await client.unary("/etcdserverpb.Lease/LeaseRevoke")(pb.LeaseRevokeRequest(ID=2))
    assert (await third).key == b"l/3"


async def test_who_gives_up_waits_no_more(client: Client) -> None:
    lock = client.unary(LOCK)
    await lease(client, 1)
    await lease(client, 2)
    await lock(v3lockpb.LockRequest(name=b"l", lease=1))
    waiting = lock(v3lockpb.LockRequest(name=b"l", lease=2))
    task = asyncio.ensure_future(waiting)
    await settled(client, b"l/", [b"l/1", b"l/2"])
    task.cancel()
    await settled(client, b"l/", [b"l/1"])


async def test_a_lease_is_granted_to_who_brings_none_and_missed_where_there_is_none(client: Client) -> None:
    answer = await client.unary(LOCK)(v3lockpb.LockRequest(name=b"l"))
    number = int(answer.key.removeprefix(b"l/"), 16)
    found = await client.unary("/etcdserverpb.Lease/LeaseTimeToLive")(pb.LeaseTimeToLiveRequest(ID=number, keys=True))
    assert found.grantedTTL == 60 and found.keys == [answer.key]
    code, text = await refusal(client.unary(LOCK)(v3lockpb.LockRequest(name=b"m", lease=99)))
    assert (code, text) == (grpc.StatusCode.UNKNOWN, "etcdserver: requested lease not found")


async def test_an_election(client: Client) -> None:
    campaign, leader = client.unary(f"{ELECTION}Campaign"), client.unary(f"{ELECTION}Leader")
    proclaim, resign = client.unary(f"{ELECTION}Proclaim"), client.unary(f"{ELECTION}Resign")
    for number in (1, 2):
        await lease(client, number)
    assert await refusal(leader(v3electionpb.LeaderRequest(name=b"e"))) == (grpc.StatusCode.UNKNOWN, "election: no leader")
    observing = client.answers(f"{ELECTION}Observe", v3electionpb.LeaderRequest(name=b"e"))
    first = await campaign(v3electionpb.CampaignRequest(name=b"e", lease=1, value=b"one"))
    assert (first.leader.key, first.leader.rev, first.leader.lease, first.leader.name) == (b"e/1", 2, 1, b"e")
    second = asyncio.ensure_future(campaign(v3electionpb.CampaignRequest(name=b"e", lease=2, value=b"two")))
    await settled(client, b"e/", [b"e/1", b"e/2"])
    await proclaim(v3electionpb.ProclaimRequest(leader=first.leader, value=b"uno"))
    assert (await leader(v3electionpb.LeaderRequest(name=b"e"))).kv.value == b"uno"
    seen = [(await observing.read()).kv.value for _ in range(2)]
    assert seen == [b"one", b"uno"]
    await resign(v3electionpb.ResignRequest(leader=first.leader))
    assert (await second).leader.key == b"e/2"
    assert (await observing.read()).kv.value == b"two"
    late = proclaim(v3electionpb.ProclaimRequest(leader=first.leader, value=b"again"))
    assert await refusal(late) == (grpc.StatusCode.UNKNOWN, "election: not leader")
    await resign(v3electionpb.ResignRequest(leader=first.leader))
    assert await refusal(resign(v3electionpb.ResignRequest())) == (grpc.StatusCode.UNKNOWN, '"leader" field must be provided')
    # who leads already and campaigns anew with another value proclaims it
    await campaign(v3electionpb.CampaignRequest(name=b"e", lease=2, value=b"dos"))
    assert (await observing.read()).kv.value == b"dos"
