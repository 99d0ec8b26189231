"""Three members in processes of their own: what a fault of one, or of two, does to the clients of all."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.cluster_process import CONFIG_MAPS, ClusterMember, ClusterProcesses, Watching, Writers, eventually

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

FAILOVER_SECONDS_MAX = 5.0
"""Two on a machine with nothing else to do; these tests share theirs."""

ANSWER_SECONDS_MAX = 12.0
"""From a request to its refusal where there is no quorum."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    # A member that is away for a moment already lags too far for the log, and gets the database.
    short_log = ("--snapshot-count", "60", "--snapshot-catchup-entries", "10")
    processes = ClusterProcesses(tmp_path_factory.mktemp("cluster"), 3, *short_log)
    try:
        processes.start()
        yield processes
    finally:
        processes.end()


@pytest.fixture
def cluster(started: ClusterProcesses) -> ClusterProcesses:
    """All three run."""
    started.heal()
    return started


def kubectl(member: ClusterMember, *arguments: str) -> str:
    environment = dict(os.environ, KUBECONFIG=str(member.kubeconfig), HOME=str(member.data_dir))
    done = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_member_answers_kubectl_and_sees_what_the_others_wrote(cluster: ClusterProcesses) -> None:
    if shutil.which("kubectl") is None:
        pytest.fail("these tests need the real kubectl on the PATH")
    for member in cluster.members:
        kubectl(member, "create", "configmap", f"kubectl-{member.name}", "--from-literal=a=b")
        for other in cluster.members:
            assert f"kubectl-{member.name}" in kubectl(other, "get", "configmaps", "-o", "name")


def test_the_traffic_between_members_and_the_ends_of_certificates_are_told(cluster: ClusterProcesses) -> None:
    for member in cluster.members:
        found = member.metrics()
        assert sum(value for name, value in found.items() if name.startswith("etcd_network_active_peers{")) == 2
        for name in ("sent_bytes_total{To=", "received_bytes_total{From=", "round_trip_time_seconds_count{To="):
            moved = [value for sample, value in found.items() if sample.startswith(f"etcd_network_peer_{name}")]
            assert len(moved) == 2 and min(moved) > 0, name
        ends = {sample for sample, value in found.items() if sample.startswith("sampan_certificate_exp") and value > time.time()}
        for purpose in ("apiserver", "client-ca", "etcd-peer", "etcd-peer-ca"):
            assert any(f'purpose="{purpose}"' in sample for sample in ends), purpose


def test_the_leader_is_killed_and_nothing_acknowledged_is_lost_nor_a_watch_disturbed(cluster: ClusterProcesses) -> None:
    leader = cluster.leader()
    survivors = cluster.others(leader)
    watches = [Watching(member, "kill-") for member in survivors]
    with Writers(cluster.members, "kill") as writers:
        writers.wait_for(20)
        killed_at = time.monotonic()
        leader.kill()
        writers.wait_for(20)
        assert writers.longest_pause(killed_at) < FAILOVER_SECONDS_MAX
        leader.start()
        writers.wait_for(10)
    there = survivors[0].names("kill-")
    assert writers.names() <= set(there)
    for member in cluster.members:
        assert member.names("kill-") == there
    for watch in watches:
        watch.check(there)


@pytest.mark.skipif("SAMPAN_KILL_ROUNDS" not in os.environ, reason="a long run: SAMPAN_KILL_ROUNDS says how many")
def test_one_after_the_other_is_killed_or_stopped_under_load(cluster: ClusterProcesses) -> None:
    """Any one of them, leader or not, by a number that is printed when it fails."""
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}")
    with Writers(cluster.members, "rounds") as writers:
        for _ in range(int(os.environ["SAMPAN_KILL_ROUNDS"])):
            victim, kill = rng.choice(cluster.members), rng.random() < 0.5
            writers.wait_for(10)
            victim.kill() if kill else victim.pause()
            writers.wait_for(rng.randrange(5, 150))
            victim.launch() if kill else victim.resume()
            eventually(victim.is_ready, f"{victim.name} is back\n{victim.log.read_text()}", 60)
    lists = [member.names("rounds-") for member in cluster.members]
    assert lists[0] == lists[1] == lists[2]
    assert writers.names() <= set(lists[0])


def test_without_a_quorum_requests_are_refused_in_time_and_go_on_once_it_is_back(cluster: ClusterProcesses) -> None:
    survivor = cluster.members[0]
    survivor.create_surely("quorum-before")
    for member in cluster.others(survivor):
        member.kill()
    eventually(lambda: not survivor.is_ready(), "the survivor has noticed")
    assert survivor.status("/livez") == 200
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        write = pool.submit(survivor.create, "quorum-lost")
        read = pool.submit(survivor.status, f"{CONFIG_MAPS}/quorum-before")
        listed = pool.submit(survivor.request, "GET", CONFIG_MAPS)
    assert time.monotonic() - began < ANSWER_SECONDS_MAX
    assert write.result() in (503, 504) and read.result() in (503, 504)
    status, answer = listed.result()
    assert status in (503, 504) and answer["kind"] == "Status" and "etcdserver: " in answer["message"]
    cluster.heal()
    survivor.create_surely("quorum-after")
    for member in cluster.members:
        assert {"quorum-before", "quorum-after"} <= set(member.names("quorum-"))


def test_all_are_killed_at_once_and_started_again(cluster: ClusterProcesses) -> None:
    with Writers(cluster.members, "all") as writers:
        writers.wait_for(20)
        for member in cluster.members:
            member.kill()
    cluster.heal()
    lists = [set(member.names("all-")) for member in cluster.members]
    assert lists[0] == lists[1] == lists[2]
    assert writers.names() <= lists[0]
    for member in cluster.members:
        member.create_surely(f"all-after-{member.name}")


@pytest.mark.parametrize("which", ["leader", "follower"])
def test_a_member_that_is_stopped_for_a_while_hurts_nobody(cluster: ClusterProcesses, which: str) -> None:
    leader = cluster.leader()
    stopped = leader if which == "leader" else cluster.others(leader)[0]
    others = cluster.others(stopped)
    prefix = f"stop-{which}"
    watch = Watching(others[0], prefix)
    with Writers(others, prefix) as writers:
        writers.wait_for(5)
        stopped.pause()
        at = time.monotonic()
        writers.wait_for(30)
        assert writers.longest_pause(at) < FAILOVER_SECONDS_MAX
        stopped.resume()
        eventually(stopped.is_ready, "it is back")
        writers.wait_for(5)
    there = others[0].names(prefix)
    assert writers.names() <= set(there)
    assert stopped.names(prefix) == there, "what it answers is not from before its sleep"
    watch.check(there)
    stopped.create_surely(f"{prefix}-after")


ATTEMPTS_MAX = 5


def test_a_watch_on_a_member_that_got_the_database_goes_on_or_ends_but_leaves_nothing_out(cluster: ClusterProcesses) -> None:
    leader = cluster.leader()
    lagging = cluster.others(leader)[0]
    others = cluster.others(lagging)
    received = 'etcd_network_snapshot_receive_success{From="'
    before = sum(value for name, value in lagging.metrics().items() if name.startswith(received))
    watch = Watching(lagging, "database-")
    with Writers(others, "database") as writers:
        writers.wait_for(5)
        for _ in range(ATTEMPTS_MAX):  # when the others forget entries is theirs to say
            lagging.pause()
            writers.wait_for(150)
            lagging.resume()
            eventually(lagging.is_ready, "it is back")
            writers.wait_for(5)
            if sum(value for name, value in lagging.metrics().items() if name.startswith(received)) > before:
                break
        else:
            raise AssertionError("it did not get the database")
    there = others[0].names("database-")
    assert lagging.names("database-") == there
    eventually(lambda: watch.ended.is_set() or len(watch.events) >= len(there), "the watch has ended or has everything")
    if watch.ended.is_set():
        watch.check_no_gap(others[0])
    else:
        watch.check(there)


def test_new_certificates_are_used_for_new_connections_between_members(cluster: ClusterProcesses) -> None:
    """One member gets new ones while it runs; the others reach it, and it them, after all connections were made anew."""
    import datetime

    from apiserver.cli.pki import Pki

    member = cluster.members[1]
    directory = member.data_dir / "pki"
    certificate = directory / "etcd" / "peer.crt"
    before = member.metrics()
    # Made yesterday, so that the gauge tells which one is used.
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    pair = Pki(member.data_dir.parent / "other", yesterday, cluster.pki).etcd_peer(member.name, ())
    shutil.copy(pair.certificate, certificate)
    shutil.copy(pair.key, certificate.with_suffix(".key"))
    for other in cluster.others(member):
        other.kill()
    cluster.heal()
    member.create_surely("certificate")
    name = next(name for name in before if name.startswith("sampan_certificate_expiration") and 'purpose="etcd-peer"' in name)
    assert member.metrics()[name] == pytest.approx(before[name] - 86_400, abs=3600)
