"""CronJobs: the schedule as a dumb twin reads it, and one Job for each moment."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.interface import PatchType
from controllers.client.resources import CRON_JOBS, JOBS
from controllers.cronjob import decision, schedule
from controllers.cronjob.controller import CronJobController
from controllers.cronjob.schedule import ScheduleInvalid, parse
from tests.controllers.world import World


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("* * * * *", "2024-05-01T10:00:30", "2024-05-01T10:01:00"),
        ("*/15 * * * *", "2024-05-01T10:45:00", "2024-05-01T11:00:00"),
        ("5/20 * * * *", "2024-05-01T10:05:00", "2024-05-01T10:25:00"),
        ("0 0 29 2 *", "2024-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 12 * JAN-mar Mon", "2024-03-26T00:00:00", "2025-01-06T12:00:00"),
        ("0 0 13 * 5", "2024-05-01T00:00:00", "2024-05-03T00:00:00"),  # either of the two days
        ("0 0 13 * *", "2024-05-01T00:00:00", "2024-05-13T00:00:00"),
        ("0 0 */2 * 5", "2024-05-01T00:00:00", "2024-05-03T00:00:00"),
        ("0 9-17/4,23 * * ?", "2024-05-01T17:00:00", "2024-05-01T23:00:00"),
        ("@weekly", "2024-05-01T00:00:00", "2024-05-05T00:00:00"),
        ("@yearly", "2024-05-01T00:00:00", "2025-01-01T00:00:00"),
        ("@every 1h30m", "2024-05-01T00:00:00", "2024-05-01T01:30:00"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2024-05-01T00:00:00", "2024-05-02T00:00:00"),
    ],
)
def test_the_next_moment(text: str, after: str, expected: str) -> None:
    assert parse(text).next(at(after)) == at(expected)


def test_a_moment_that_a_clock_skips_does_not_come_and_one_shown_twice_comes_twice() -> None:
    half_past_two = parse("30 2 * * *", "Europe/Berlin")
    assert half_past_two.next(at("2024-03-30T12:00:00")) == at("2024-04-01T00:30:00")
    first = half_past_two.next(at("2024-10-26T12:00:00"))
    assert first == at("2024-10-27T00:30:00")
    assert half_past_two.next(first) == at("2024-10-27T01:30:00")


def test_a_moment_that_never_comes() -> None:
    assert parse("0 0 30 2 *").next(at("2024-01-01T00:00:00")) is None
    assert parse("0 0 30 2 *").latest(at("2024-01-01T00:00:00"), at("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "5-1 * * * *",
        "*/0 * * * *",
        "x * * * *",
        "@noon",
        "@every soon",
        "TZ=Mars/Olympus * * * * *",
    ],
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleInvalid):
        parse(text)


FIELDS = st.tuples(
    *(
        st.one_of(
            st.just("*"),
            st.integers(low, high).map(str),
            st.integers(2, 9).map(lambda n: f"*/{n}"),
            st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda p: f"{min(p)}-{max(p)}"),
        )
        for low, high in ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6))
    )
)


def twin(text: str, moment: datetime.datetime) -> bool:
    """Whether a schedule names that minute, read field by field."""
    minute, hour, day, month, weekday = text.split()

    def fits(field: str, value: int, low: int) -> bool:
        if field.startswith("*/"):
            return (value - low) % int(field[2:]) == 0
        if "-" in field:
            first, last = field.split("-")
            return int(first) <= value <= int(last)
        return field == "*" or int(field) == value

    days = [fits(day, moment.day, 1), fits(weekday, moment.isoweekday() % 7, 0)]
    right_day = all(days) if "*" in (day, weekday) else any(days)
    return fits(minute, moment.minute, 0) and fits(hour, moment.hour, 0) and right_day and fits(month, moment.month, 1)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(FIELDS, st.integers(0, 366 * 24 * 60))
def test_next_and_latest_agree_with_the_twin(fields: tuple[str, ...], minutes: int) -> None:
    text = " ".join(fields)
    start = at("2024-01-01T00:00:00") + datetime.timedelta(minutes=minutes)
    window = [start + datetime.timedelta(minutes=n) for n in range(1, 2 * 24 * 60)]
    named = [m for m in window if twin(text, m)]
    found = parse(text).next(start)
    assert found is not None and twin(text, found)
    assert (found if found <= window[-1] else None) == (named[0] if named else None)
    assert parse(text).latest(start, window[-1]) == (named[-1] if named else None)


# the controller; the virtual clock starts at 10:00


def cron_job(text: str = "*/5 * * * *", **spec: Any) -> Object:
    return {
        "metadata": {"name": "c"},
        "spec": {
            "schedule": text,
            "concurrencyPolicy": "Allow",
            "jobTemplate": {"metadata": {"labels": {"app": "c"}, "annotations": {"x": "y"}}, "spec": {"template": {"spec": {}}}},
            **spec,
        },
    }


class Clocked(World):
    def names(self) -> list[str]:
        return [j["metadata"]["name"] for j in self.api.all(JOBS)]

    def status(self) -> Object:
        found: Object = self.api.all(CRON_JOBS)[0].get("status") or {}
        return found

    async def finish(self, name: str, end: str = "Complete") -> None:
        stamp = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        status: Object = {"startTime": stamp, "conditions": [{"type": end, "status": "True"}]}
        if end == "Complete":
            status["completionTime"] = stamp
        await self.api.patch(JOBS, "a", name, {"status": status}, subresource="status")
        await self.rest()


def name_at(text: str) -> str:
    return f"c-{int(at(text).timestamp()) // 60}"


async def test_each_moment_gets_one_job_named_after_it() -> None:
    world = Clocked()
    made = await world.api.create(CRON_JOBS, "a", cron_job())
    async with world.running(CronJobController):
        await world.advance(299)
        assert world.names() == []
        await world.advance(2)
        assert world.names() == [name_at("2024-05-01T10:05:00")]
        job = world.api.all(JOBS)[0]
        assert job["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        assert job["metadata"]["labels"] == {"app": "c"}
        assert job["metadata"]["annotations"] == {"x": "y", decision.SCHEDULED_ANNOTATION: "2024-05-01T10:05:00Z"}
        assert world.status()["lastScheduleTime"] == "2024-05-01T10:05:00Z"
        assert [r["name"] for r in world.status()["active"]] == world.names()
        await world.finish(world.names()[0])
        assert "active" not in world.status() and world.status()["lastSuccessfulTime"] == "2024-05-01T10:05:01Z"
        await world.advance(300)
        assert len(world.names()) == 2
        assert not world.events("UnexpectedJob") and len(world.events("SawCompletedJob")) == 1


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Allow", ["2024-05-01T10:05:00", "2024-05-01T10:10:00"]),
        ("Forbid", ["2024-05-01T10:05:00"]),
        ("Replace", ["2024-05-01T10:10:00"]),
    ],
)
async def test_what_happens_while_a_job_still_runs(policy: str, expected: list[str]) -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job(concurrencyPolicy=policy))
    async with world.running(CronJobController):
        await world.advance(301)
        await world.advance(300)
        assert world.names() == [name_at(moment) for moment in expected]
        assert [r["name"] for r in world.status()["active"]] == world.names()
        if policy == "Forbid":
            assert world.events("JobAlreadyActive")
            await world.advance(60)
            await world.finish(world.names()[0])  # what was put off is made up for
            assert world.names()[-1] == name_at("2024-05-01T10:10:00")


async def test_of_missed_moments_only_the_latest_is_made_up_for() -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job())
    await world.clock.advance(3601)
    async with world.running(CronJobController):
        assert world.names() == [name_at("2024-05-01T11:00:00")]


async def test_after_the_starting_deadline_nothing_is_made_up_for() -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job("0 * * * *", startingDeadlineSeconds=60))
    await world.clock.advance(3600 + 120)
    async with world.running(CronJobController):
        assert world.names() == []
        assert "2024-05-01T11:00:00Z" in world.events("MissSchedule")[0]["message"]
        await world.advance(3600)
        assert world.names() == [name_at("2024-05-01T12:00:00")]


async def test_a_suspended_one_starts_nothing_and_goes_on_when_it_is_resumed() -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job(suspend=True))
    async with world.running(CronJobController):
        await world.advance(1000)
        assert world.names() == []
        await world.api.patch(CRON_JOBS, "a", "c", {"spec": {"suspend": False}}, PatchType.MERGE)
        await world.rest()
        assert world.names() == [name_at("2024-05-01T10:15:00")]


async def test_history_is_kept_within_its_limits() -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
    async with world.running(CronJobController):
        for end in ("Complete", "Failed", "Complete"):
            await world.advance(301)
            running = world.status()["active"][0]["name"]
            await world.finish(running, end)
        assert world.names() == [name_at("2024-05-01T10:15:00")]


async def test_a_job_started_before_a_crash_is_found_and_not_made_twice() -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job())
    found = world.api.all(CRON_JOBS)[0]
    await world.clock.advance(301)
    await world.api.create(JOBS, "a", decision.job_for(found, at("2024-05-01T10:05:00"), datetime.UTC))
    async with world.running(CronJobController):
        assert world.names() == [name_at("2024-05-01T10:05:00")]
        assert [r["name"] for r in world.status()["active"]] == world.names()
        assert world.status()["lastScheduleTime"] == "2024-05-01T10:05:00Z"


async def test_an_active_job_that_is_gone_is_dropped() -> None:
    world = Clocked()
    await world.api.create(CRON_JOBS, "a", cron_job())
    async with world.running(CronJobController):
        await world.advance(301)
        await world.api.delete(JOBS, "a", world.names()[0])
        await world.rest()
        assert "active" not in world.status() and world.events("MissingJob")


def test_the_annotation_shows_the_time_of_the_zone() -> None:
    made = {**cron_job(), "metadata": {"name": "c", "namespace": "a", "uid": "u"}}
    job = decision.job_for(made, at("2024-05-01T10:05:00"), zoneinfo.ZoneInfo("Asia/Tokyo"))
    assert job["metadata"]["annotations"][decision.SCHEDULED_ANNOTATION] == "2024-05-01T19:05:00+09:00"


def test_more_than_a_hundred_missed_moments_are_worth_a_warning() -> None:
    made = {**cron_job("* * * * *"), "metadata": {"name": "c", "creationTimestamp": "2024-05-01T00:00:00Z"}}
    found = decision.due(made, schedule.parse("* * * * *"), at("2024-05-01T10:00:00"))
    assert [t.reason for t in found.told] == ["TooManyMissedTimes"] and found.moment == at("2024-05-01T10:00:00")
    assert decision.due(made, schedule.parse("0 * * * *"), at("2024-05-01T10:00:00")).told == ()
