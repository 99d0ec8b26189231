"""What etcdctl does with the members of a cluster of three: the same script against three etcds and against three members of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.benchmarks.bench_etcd import Cluster
from tests.storage.etcdserver.etcdctl import Pair, Side

pytestmark = pytest.mark.slow

READY_ATTEMPTS_MAX = 400


async def learned(cluster: Cluster) -> Side:
    """A side that names members by m0 …, and their addresses and ids by that; its target is the leader."""
    side = Side(cluster.target)
    members, statuses = [], []
    for _ in range(READY_ATTEMPTS_MAX):
        side.target = ",".join(f"127.0.0.1:{port}" for port in cluster.clients)
        members = (json.loads((await raw(side, "member", "list", "-w", "json")) or "{}")).get("members", [])
        statuses = json.loads(await raw(side, "endpoint", "status", "-w", "json") or "[]")
        if all(member.get("clientURLs") for member in members) and len(members) == len(statuses) == 3:
            if all(status["Status"].get("leader") for status in statuses):
                break
        await asyncio.sleep(0.05)
    leader = statuses[0]["Status"]["leader"]
    followers = 0
    for member in sorted(members, key=lambda member: str(member["name"])):
        role = "leader"
        if member["ID"] != leader:
            followers += 1
            role = f"follower{followers}"
        else:
            side.target = member["clientURLs"][0].removeprefix("http://")
        side.names |= {
            str(member["ID"]): f"<{role}Number>", f"{member['ID']:x}": f"<{role}>", member["name"]: f"<{role}Name>",
            member["clientURLs"][0].removeprefix("http://"): f"<{role}Client>",
            member["peerURLs"][0].removeprefix("http://"): f"<{role}Peer>",
        }  # fmt: skip
    await healthy(side, next(member["peerURLs"][0] for member in members if member["ID"] != leader))
    header = statuses[0]["Status"]["header"]
    side.names |= {str(header["cluster_id"]): "<clusterNumber>", f"{header['cluster_id']:x}": "<cluster>"}
    return side


async def healthy(side: Side, known_peer_url: str) -> None:
    """Changes of members are refused until the leader has reached the others for a while, without a break on a busy machine."""
    for _ in range(READY_ATTEMPTS_MAX):
        process = await side.start(("member", "add", "known", f"--peer-urls={known_peer_url}"))
        _, complaint = await process.communicate()
        if b"Peer URLs already exists" in complaint:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the members do not become healthy: {complaint.decode()}")


async def raw(side: Side, *arguments: str) -> str:
    process = await side.start(arguments)
    output, _ = await process.communicate()
    return output.decode()


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    clusters = [Cluster(kind, tmp_path / kind, 3) for kind in ("etcd", "ours")]
    try:
        await asyncio.gather(*(asyncio.to_thread(cluster.start) for cluster in clusters))
        theirs, ours = await asyncio.gather(*(learned(cluster) for cluster in clusters))
        made = Pair(theirs, ours)
        yield made
        assert not made.differences, "\n\n".join(made.differences)
    finally:
        for cluster in clusters:
            cluster.kill()


async def test_members(pair: Pair) -> None:
    await pair.same_all(
        """
put k v
get k
move-leader 1234
move-leader <leader>
member update <follower1> --peer-urls=http://<follower1Peer>
member update 1234 --peer-urls=http://127.0.0.1:10
member remove 1234
member promote 1234
member promote <follower1>
member add m9 --peer-urls=http://<follower2Peer>
member add m9 --learner --peer-urls=http://127.0.0.1:11
"""
    )
    for side in (pair.etcd, pair.ours):
        found = json.loads(await raw(side, "member", "list", "-w", "json"))["members"]
        assert len(found) == 4
        [learner] = [member for member in found if member.get("isLearner")]
        assert learner["peerURLs"] == ["http://127.0.0.1:11"]
        side.names |= {f"{learner['ID']:x}": "<learner>", str(learner["ID"]): "<learnerNumber>"}
    await pair.same_all(
        """
member promote <learner>
member add m10 --learner --peer-urls=http://127.0.0.1:12
move-leader <learner>
member remove <learner>
member remove <learner>
member add m9 --peer-urls=http://127.0.0.1:12
put k w
get k
"""
    )


async def test_the_leader_moves(pair: Pair) -> None:
    await pair.same("put k v")
    outcome = await pair.same("move-leader <follower1>")
    assert "Leadership transferred from <leader> to <follower1>" in outcome.output
    # whoever is asked now leads no more
    await pair.same("move-leader <follower2>")
    await pair.same("put k w")
    await pair.same("endpoint health")
