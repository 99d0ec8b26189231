"""One leader at a time, by what each candidate's own clock saw."""

from __future__ import annotations

import asyncio
import random

import pytest

from controllers.client.errors import ConnectionFailed
from controllers.client.resources import LEASES
from controllers.leaderelection import leader_elector
from controllers.leaderelection.leader_elector import ElectionConfig, LeaderElector, LostLeadership
from tests.controllers.fake_api import FakeApi
from tests.controllers.virtual_clock import VirtualClock, settle


def elector(api: FakeApi, identity: str, clock: VirtualClock) -> LeaderElector:
    return LeaderElector(
        api, ElectionConfig(namespace="kube-system", name="kube-controller-manager", identity=identity), clock=clock, rng=random.Random(7)
    )


async def forever() -> None:
    await asyncio.Event().wait()


async def test_one_of_two_leads_and_the_other_follows_when_it_stops_cleanly() -> None:
    clock = VirtualClock()
    api = FakeApi(clock)
    a, b = elector(api, "a", clock), elector(api, "b", clock)
    running_a = asyncio.create_task(a.run(forever))
    await settle()
    running_b = asyncio.create_task(b.run(forever))
    await clock.advance(60)
    assert a.is_leader and not b.is_leader
    running_a.cancel()
    await clock.advance(20)
    lease = api.all(LEASES)[0]
    assert b.is_leader and lease["spec"]["holderIdentity"] == "b"
    running_b.cancel()
    await settle()
    assert api.all(LEASES)[0]["spec"]["holderIdentity"] == ""


async def test_a_dead_leader_is_replaced_only_after_its_lease_was_seen_unchanged_for_its_duration() -> None:
    """renewTime lies in the future here: only what the candidate sees change counts, not the stamp."""
    clock = VirtualClock()
    api = FakeApi(clock)
    await api.create(
        LEASES,
        "kube-system",
        {
            "metadata": {"name": "kube-controller-manager"},
            "spec": {
                "holderIdentity": "dead",
                "leaseDurationSeconds": 15,
                "renewTime": "2030-01-01T00:00:00.000000Z",
                "leaseTransitions": 3,
            },
        },
    )
    b = elector(api, "b", clock)
    running = asyncio.create_task(b.run(forever))
    await clock.advance(14.5)
    assert not b.is_leader
    await clock.advance(4)
    spec = api.all(LEASES)[0]["spec"]
    assert b.is_leader and spec["holderIdentity"] == "b" and spec["leaseTransitions"] == 4
    running.cancel()


async def test_a_leader_that_cannot_renew_stops_its_work() -> None:
    clock = VirtualClock()
    api = FakeApi(clock)
    a = elector(api, "a", clock)
    stopped: list[str] = []

    async def work() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise

    running = asyncio.create_task(a.run(work))
    await settle()
    api.fail("*", "leases", ConnectionFailed("away"), times=1000)
    await clock.advance(9)
    assert a.is_leader
    await clock.advance(6)
    with pytest.raises(LostLeadership):
        await running
    assert stopped == ["stopped"]


async def test_the_end_does_not_wait_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_elector, "RELEASE_SECONDS", 0.01)
    clock = VirtualClock()
    api = FakeApi(clock)
    a = elector(api, "a", clock)
    running = asyncio.create_task(a.run(forever))
    await settle()
    assert a.is_leader
    monkeypatch.setattr(api, "get", lambda *_: forever())
    running.cancel()
    ended, _ = await asyncio.wait({running}, timeout=5)
    assert ended and not a.is_leader


def test_durations_that_cannot_be_safe_are_refused() -> None:
    with pytest.raises(ValueError, match="lease duration"):
        ElectionConfig(namespace="n", name="n", identity="a", lease_seconds=5).validate()
