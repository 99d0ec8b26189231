"""Members come and go while the cluster serves, by the real etcdctl as an operator uses it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster_process import ClusterMember, ClusterProcesses, Writers, eventually, free_ports
from tests.storage.etcd_process import BINARIES

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

ETCDCTL_SECONDS = 40.0
END_SECONDS = 40.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcesses]:
    processes = ClusterProcesses(tmp_path, client_ports=True)
    try:
        processes.start()
        yield processes
    finally:
        processes.end()


class Etcdctl:
    """By one member's client port, with the client certificate of its data directory."""

    def __init__(self, cluster: ClusterProcesses, *members: ClusterMember) -> None:
        pki = members[0].data_dir / "pki"
        self._command = [
            *(str(BINARIES / "etcdctl"), "--endpoints", ",".join(member.client_url for member in members), "--command-timeout", "20s"),
            *("--cacert", str(cluster.pki / "etcd" / "ca.crt"), "--cert", str(pki / "etcd" / "client.crt")),
            *("--key", str(pki / "etcd" / "client.key")),
        ]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._command, *arguments], capture_output=True, text=True, timeout=ETCDCTL_SECONDS)

    def __call__(self, *arguments: str) -> str:
        """Again where an election comes between, or the cluster does not take the change yet."""
        last = ""

        def done() -> bool:
            nonlocal last
            found = self.run(*arguments)
            last = found.stdout if found.returncode == 0 else found.stderr
            return found.returncode == 0

        eventually(done, f"etcdctl {' '.join(arguments)}: {last}", ETCDCTL_SECONDS)
        return last

    def members(self) -> dict[str, dict[str, Any]]:
        """By name; of one that has not started, by its peer URL."""
        found = json.loads(self("member", "list", "-w", "json"))["members"]
        return {member.get("name") or member["peerURLs"][0]: member for member in found}

    def id_of(self, name: str) -> str:
        return f"{self.members()[name]['ID']:x}"


def join(cluster: ClusterProcesses, etcdctl: Etcdctl, name: str, *flags: str) -> ClusterMember:
    """Add a member, start it as ``member add`` says, and wait until it serves (a learner: until it has started)."""
    peer_url = f"https://127.0.0.1:{free_ports(1)[0]}"
    told = etcdctl("member", "add", name, f"--peer-urls={peer_url}", *flags)
    initial = re.search(r'ETCD_INITIAL_CLUSTER="([^"]+)"', told)
    state = re.search(r'ETCD_INITIAL_CLUSTER_STATE="([^"]+)"', told)
    assert initial is not None and state is not None, told
    member = cluster.member(name, peer_url, "--initial-cluster", initial[1], "--initial-cluster-state", state[1])
    cluster.members.append(member)
    member.launch()
    return member


def ends_by_itself(member: ClusterMember) -> str:
    """What it says at its end."""
    assert member.process is not None
    assert member.process.wait(END_SECONDS) == 1
    last: str = member.log.read_text().strip().splitlines()[-1]
    return last


def test_a_dead_member_is_replaced_a_learner_promoted_and_what_lost_its_memory_refused(cluster: ClusterProcesses) -> None:
    first, second, third = cluster.members
    etcdctl = Etcdctl(cluster, first)
    assert sorted(etcdctl.members()) == ["m1", "m2", "m3"]
    with Writers([first, second], "change") as writers:
        # the third dies for good, and a fourth takes its place
        third.kill()
        etcdctl("member", "remove", etcdctl.id_of("m3"))
        fourth = join(cluster, etcdctl, "m4")
        fourth.wait_ready()
        assert fourth.create("by-the-fourth") in (201, 504)
        # the one that was removed comes back: it is told, and ends
        third.launch()
        assert "permanently removed" in ends_by_itself(third)
        # one more learns, and votes once it is in step
        fifth = join(cluster, etcdctl, "m5", "--learner")
        eventually(lambda: etcdctl.members().get("m5", {}).get("clientURLs"), "the learner has told its name")
        assert etcdctl.members()["m5"]["isLearner"]
        etcdctl("member", "promote", etcdctl.id_of("m5"))
        fifth.wait_ready()
        writers.wait_for(10)
    assert not etcdctl.members()["m5"].get("isLearner")
    assert sorted(etcdctl.members()) == ["m1", "m2", "m4", "m5"]
    names = first.names("change-")
    assert writers.names() <= set(names)
    for member in (second, fourth, fifth):
        assert member.names("change-") == names

    # a disk that was lost: what it promised is forgotten, so it may not come back under the same id
    second.kill()
    shutil.rmtree(second.data_dir / "member")
    second.launch()
    assert "has run before" in ends_by_itself(second)
    etcdctl("member", "remove", etcdctl.id_of("m2"))

    # leadership moves where it is asked to
    leader = cluster.leader()
    target = next(member for member in (first, fourth, fifth) if member is not leader)
    Etcdctl(cluster, leader)("move-leader", etcdctl.id_of(target.name))
    eventually(target.leads, "it leads")
    assert target.create("under-the-new-leader") == 201
