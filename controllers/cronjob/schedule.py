"""Cron schedules as robfig/cron's standard parser reads them, which Kubernetes uses. Pure.

Five fields: minute, hour, day of month, month, day of week (0 is Sunday); each a list of ``*``, ``?``, ``a``, ``a-b``, with ``/step``;
months and days also by their English names. If both days are given, either suffices. ``@yearly`` … ``@hourly`` stand for the obvious,
``@every 1h30m`` counts from the last time.

Times are those of the wall clocks of a zone: a moment that a clock skips in spring does not come, one that it shows twice in autumn comes
twice, as there.
"""

from __future__ import annotations

import bisect
import datetime
import functools
import re
import zoneinfo
from dataclasses import dataclass
from typing import Protocol

#: Days looked ahead or back for a schedule that never comes, as 30 February; robfig/cron gives up after five years too.
DAYS_MAX = 5 * 366

_MONTHS = {name: n for n, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1)}
_WEEKDAYS = {name: n for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ZONE_PREFIXES = ("TZ=", "CRON_TZ=")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class ScheduleInvalid(ValueError):
    pass


class Schedule(Protocol):
    def next(self, after: datetime.datetime) -> datetime.datetime | None:
        """The first moment after that one; None where there is none within five years."""
        ...

    def latest(self, after: datetime.datetime, until: datetime.datetime) -> datetime.datetime | None:
        """The last moment in ``after`` < moment ≤ ``until``."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed delay in whole seconds, at least one."""

    seconds: int

    def next(self, after: datetime.datetime) -> datetime.datetime | None:
        return after.replace(microsecond=0) + datetime.timedelta(seconds=self.seconds)

    def latest(self, after: datetime.datetime, until: datetime.datetime) -> datetime.datetime | None:
        start = after.replace(microsecond=0)
        rounds = int((until - start).total_seconds() // self.seconds)
        return start + datetime.timedelta(seconds=rounds * self.seconds) if rounds >= 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: one of the two days is not restricted: then both have to fit, else one of them
    any_day: bool
    zone: datetime.tzinfo

    def next(self, after: datetime.datetime) -> datetime.datetime | None:
        day = after.astimezone(self.zone).date()
        for offset in range(DAYS_MAX):
            moments = self._moments(day + datetime.timedelta(days=offset))
            position = bisect.bisect_right(moments, after)
            if position < len(moments):
                return moments[position]
        return None

    def latest(self, after: datetime.datetime, until: datetime.datetime) -> datetime.datetime | None:
        day, first_day = until.astimezone(self.zone).date(), after.astimezone(self.zone).date()
        for offset in range(min(DAYS_MAX, (day - first_day).days + 1)):
            moments = self._moments(day - datetime.timedelta(days=offset))
            position = bisect.bisect_right(moments, until)
            if position:
                found = moments[position - 1]
                return found if found > after else None
        return None

    def _moments(self, day: datetime.date) -> tuple[datetime.datetime, ...]:
        if day.month not in self.months or not self._is_day(day):
            return ()
        return _moments_of(self, day)

    def _is_day(self, day: datetime.date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (of_month and of_week) if self.any_day else (of_month or of_week)


@functools.lru_cache(maxsize=256)  # a day of a schedule is asked for again and again; one costs up to 3 ms
def _moments_of(fields: Fields, day: datetime.date) -> tuple[datetime.datetime, ...]:
    found: set[datetime.datetime] = set()
    for hour in fields.hours:
        for minute in fields.minutes:
            local = datetime.datetime.combine(day, datetime.time(hour, minute), fields.zone)
            for fold in (0, 1):
                moment = local.replace(fold=fold).astimezone(datetime.UTC)
                back = moment.astimezone(fields.zone)
                if (back.hour, back.minute) == (hour, minute):  # else the clock skips it
                    found.add(moment)
    return tuple(sorted(found))


@functools.lru_cache(maxsize=1024)
def parse(text: str, time_zone: str | None = None) -> Schedule:
    """``time_zone`` is an IANA name; none: the zone the text begins with (``TZ=…``), or else UTC.

    Raises:
        ScheduleInvalid: neither the API server nor this lets it through.
    """
    zone = zone_of(text, time_zone)
    if text.startswith(_ZONE_PREFIXES):
        text = text.partition(" ")[2]
    text = text.strip()
    if text.startswith("@every "):
        return Every(max(1, int(_duration(text.removeprefix("@every ").strip()))))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ScheduleInvalid(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != 5:
        raise ScheduleInvalid(f"expected exactly 5 fields, found {len(parts)}: {text}")
    minutes, _ = _field(parts[0], 0, 59, {})
    hours, _ = _field(parts[1], 0, 23, {})
    days, any_of_month = _field(parts[2], 1, 31, {})
    months, _ = _field(parts[3], 1, 12, _MONTHS)
    weekdays, any_of_week = _field(parts[4], 0, 6, _WEEKDAYS)
    return Fields(minutes=minutes, hours=hours, days=days, months=months, weekdays=weekdays, any_day=any_of_month or any_of_week, zone=zone)


def zone_of(text: str, time_zone: str | None) -> datetime.tzinfo:
    """The zone of a schedule, as ``parse`` takes it.

    Raises:
        ScheduleInvalid: there is no such zone.
    """
    name = time_zone
    if not name and text.startswith(_ZONE_PREFIXES):
        name = text.partition(" ")[0].partition("=")[2]
    if not name:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ScheduleInvalid(f"unknown time zone {name}") from error


def _duration(text: str) -> float:
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ScheduleInvalid(f"failed to parse duration {text}")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def _field(text: str, low: int, high: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """The values, and whether the field is left open: ``*`` or ``?`` without a step."""
    values: set[int] = set()
    is_open = False
    for expression in text.split(","):
        span, slash, step_text = expression.partition("/")
        step = _number(step_text, {}) if slash else 1
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            start, end = low, high
            is_open = is_open or step == 1
        else:
            start = _number(first, names)
            end = _number(last, names) if dash else (high if slash else start)
        if step < 1 or not low <= start <= end <= high:
            raise ScheduleInvalid(f"not a range within {low}-{high}: {expression}")
        values.update(range(start, end + 1, step))
    return frozenset(values), is_open


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not (text.isascii() and text.isdigit()):
        raise ScheduleInvalid(f"failed to parse int from {text}")
    return int(text)
