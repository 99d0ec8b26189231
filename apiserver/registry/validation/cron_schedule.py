"""Cron schedules: five fields, ``@hourly`` and the like, ``@every 1h30m`` (robfig/cron's standard parser, which Kubernetes uses)."""

from __future__ import annotations

import functools
import re
import zoneinfo

_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = re.compile(r"(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+").fullmatch
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
#: (lowest, highest, names)
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: i + 1 for i, name in enumerate(_MONTHS)}),
    (0, 6, {name: i for i, name in enumerate(_DAYS)}),
)


def error_in(schedule: str) -> str:
    """What is wrong with the schedule; "" if nothing."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, text = text.partition(" ")
        if not is_time_zone(zone.partition("=")[2]):
            return f"provided bad location {zone.partition('=')[2]}: unknown time zone {zone.partition('=')[2]}"
        text = text.strip()
    if text.startswith("@"):
        if text in _DESCRIPTORS:
            return ""
        if text.startswith("@every "):
            return "" if _EVERY(text.removeprefix("@every ")) else f"failed to parse duration {text}"
        return f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, bounds in zip(fields, _FIELDS):
        for expression in field.split(","):
            if wrong := _range_error(expression, *bounds):
                return wrong
    return ""


def _range_error(expression: str, low: int, high: int, names: dict[str, int]) -> str:
    """``*``, ``?``, ``a``, ``a-b``, each with ``/step``."""
    span, slash, step = expression.partition("/")
    if "/" in step:
        return f"too many slashes: {expression}"
    first, dash, last = span.partition("-")
    if first in ("*", "?"):
        if dash:
            return f"too many hyphens: {expression}" if "-" in last else f"failed to parse int from {span}"
        start, end = low, high
    else:
        if "-" in last:
            return f"too many hyphens: {expression}"
        parsed = _number(first, names)
        if parsed is None:
            return _not_a_number(first)
        start = end = parsed
        if dash:
            parsed = _number(last, names)
            if parsed is None:
                return _not_a_number(last)
            end = parsed
        elif slash:
            end = high
    if slash:
        steps = _number(step, {})
        if steps is None:
            return _not_a_number(step)
        if steps == 0:
            return f"step of range should be a positive number: {expression}"
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {expression}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {expression}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {expression}"
    return ""


def _number(text: str, names: dict[str, int]) -> int | None:
    found = names.get(text.lower())
    if found is not None:
        return found
    return int(text) if text.isascii() and text.isdigit() else None


def _not_a_number(text: str) -> str:
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


@functools.lru_cache(maxsize=1)
def _time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def is_time_zone(name: str) -> bool:
    return name in ("", "UTC", "Local") or name in _time_zones()
