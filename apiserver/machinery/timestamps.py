"""Times as the API writes them: RFC 3339 in UTC, to the second (``Time``) or the microsecond (``MicroTime``); durations; ages.

``now`` is always an argument (seconds since the epoch, or a datetime); nothing here reads a clock.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from typing import NoReturn

_SECOND = 1_000_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY_SECONDS = 86400

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

#: days that are there whatever the year
_DATE = r"\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
_CLOCK = r"T([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_CANONICAL = re.compile(_DATE + _CLOCK + "Z", re.ASCII).fullmatch
_CANONICAL_MICRO = re.compile(_DATE + _CLOCK + r"\.\d{6}Z", re.ASCII).fullmatch
_DIGITS = re.compile(r"[0-9]+")
_FRACTION = re.compile(r"[.,][0-9]+")
_ZONE = re.compile(r"[+-](\d\d):(\d\d)", re.ASCII)


class TimestampError(ValueError):
    """The text is what Go's ``time.Parse`` says, which Kubernetes passes on."""


def format_time(moment: datetime | float) -> str:
    """``2024-01-02T03:04:05Z``: fractions of a second are cut off."""
    return _utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ") if _utc(moment).year >= 1000 else _padded(_utc(moment))


def _padded(moment: datetime) -> str:
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def format_micro_time(moment: datetime | float) -> str:
    """``2024-01-02T03:04:05.000006Z``."""
    return _utc(moment).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _utc(moment: datetime | float) -> datetime:
    if isinstance(moment, datetime):
        return moment.astimezone(UTC)
    return datetime.fromtimestamp(moment, UTC)


def parse_time(text: str) -> datetime:
    """The moment that an RFC 3339 text names, in UTC; digits beyond microseconds are dropped."""
    if _CANONICAL(text):
        return datetime.fromisoformat(text)
    return _Reader(text, _LAYOUT).moment()


def parse_micro_time(text: str) -> datetime:
    """As ``parse_time``, but exactly six digits after the point are demanded, as Kubernetes does."""
    if _CANONICAL_MICRO(text):
        return datetime.fromisoformat(text)
    return _Reader(text, _MICRO_LAYOUT).moment()


def canonical_time(text: str) -> str:
    """How the API shows a time that was sent with a fraction or another zone."""
    return text if _CANONICAL(text) else format_time(parse_time(text))


def canonical_micro_time(text: str) -> str:
    return text if _CANONICAL_MICRO(text) else format_micro_time(parse_micro_time(text))


class _Reader:
    """Reads a time part by part, so that a failure can name the part that does not fit."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.rest = text
        self.layout = layout

    def _fail(self, part: str) -> NoReturn:
        raise TimestampError(f'parsing time "{self.text}" as "{self.layout}": cannot parse "{self.rest}" as "{part}"')

    def _out_of_range(self, what: str) -> NoReturn:
        raise TimestampError(f'parsing time "{self.text}": {what} out of range')

    def _number(self, width: int, part: str) -> int:
        digits = self.rest[:width]
        if len(digits) < width or not _DIGITS.fullmatch(digits):
            self._fail(part)
        self.rest = self.rest[width:]
        return int(digits)

    def _literal(self, part: str) -> None:
        if not self.rest.startswith(part):
            self._fail(part)
        self.rest = self.rest[len(part) :]

    def _fraction(self) -> int:
        """Microseconds after the point."""
        if self.layout == _MICRO_LAYOUT:
            if not re.match(r"\.[0-9]{6}", self.rest):
                self._fail(".000000")
            digits, self.rest = self.rest[1:7], self.rest[7:]
            return int(digits)
        match = _FRACTION.match(self.rest)
        if not match:
            return 0
        self.rest = self.rest[match.end() :]
        return int(match[0][1:7].ljust(6, "0"))

    def _offset(self) -> timedelta:
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return timedelta()
        match = _ZONE.match(self.rest)
        if not match:
            self._fail("Z07:00")
        hours, minutes = int(match[1]), int(match[2])
        if hours > 24:
            self._out_of_range("time zone offset hour")
        if minutes > 60:
            self._out_of_range("time zone offset minute")
        offset = timedelta(hours=hours, minutes=minutes)
        sign = self.rest[0]
        self.rest = self.rest[match.end() :]
        return offset if sign == "+" else -offset

    def moment(self) -> datetime:
        year = self._number(4, "2006")
        self._literal("-")
        month = self._number(2, "01")
        if not 1 <= month <= 12:
            self._out_of_range("month")
        self._literal("-")
        day = self._number(2, "02")
        self._literal("T")
        hour = self._number(2, "15")
        if hour > 23:
            self._out_of_range("hour")
        self._literal(":")
        minute = self._number(2, "04")
        if minute > 59:
            self._out_of_range("minute")
        self._literal(":")
        second = self._number(2, "05")
        if second > 59:
            self._out_of_range("second")
        micros = self._fraction()
        offset = self._offset()
        if self.rest:
            raise TimestampError(f'parsing time "{self.text}": extra text: "{self.rest}"')
        if not 1 <= day <= calendar.monthrange(max(year, 1), month)[1]:
            self._out_of_range("day")
        try:
            return datetime(year, month, day, hour, minute, second, micros, UTC) - offset
        except (ValueError, OverflowError):
            self._out_of_range("year")


# --- durations -------------------------------------------------------------------------------------------------------------------

_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000, "s": _SECOND, "m": _MINUTE, "h": _HOUR}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MAX_DURATION = 2**63 - 1
#: of one number in a duration; more would be beyond 2⁶³ ns in any unit, or finer than a nanosecond
_DURATION_DIGITS_MAX = 40


def parse_duration(text: str) -> int:
    """Nanoseconds of a Go duration like ``1h30m``, ``-1.5s``, ``0``."""
    shown = f'"{text}"'
    rest = text[1:] if text[:1] in ("-", "+") else text
    negative = text[:1] == "-"
    if rest == "0":
        return 0
    if not rest:
        raise TimestampError(f"time: invalid duration {shown}")
    total = 0
    while rest:
        match = _DURATION_PART.match(rest)
        if match is None or not (match[1] or match[2]):
            raise TimestampError(f"time: invalid duration {shown}")
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not unit:
            raise TimestampError(f"time: missing unit in duration {shown}")
        if unit not in _UNITS:
            raise TimestampError(f'time: unknown unit "{unit}" in duration {shown}')
        if len(whole.lstrip("0")) > _DURATION_DIGITS_MAX:
            raise TimestampError(f"time: invalid duration {shown}")
        fraction = fraction[:_DURATION_DIGITS_MAX]
        total += int(whole or "0") * _UNITS[unit] + int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
        if total > _MAX_DURATION:
            raise TimestampError(f"time: invalid duration {shown}")
        rest = rest[match.end() :]
    return -total if negative else total


def format_duration(nanoseconds: int) -> str:
    """Go's text of a duration: ``1h30m0s``, ``1.5s``, ``100ms``, ``0s``."""
    if nanoseconds == 0:
        return "0s"
    sign, amount = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if amount < _SECOND:
        for unit, size in (("ms", 1_000_000), ("µs", 1000), ("ns", 1)):
            if amount >= size:
                return f"{sign}{_decimal(amount, size)}{unit}"
    hours, rest = divmod(amount, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds = _decimal(rest, _SECOND) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).rjust(len(str(unit)) - 1, '0').rstrip('0')}"


def human_duration(seconds: float) -> str:
    """The ages of ``kubectl get``: two or three figures, ``90s``, ``5m10s``, ``3h5m``, ``2d4h``, ``3y20d``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // _DAY_SECONDS
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def short_human_duration(seconds: float) -> str:
    """One figure: ``90m`` is ``1h``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (_DAY_SECONDS, 3600, "h"), (365 * _DAY_SECONDS, _DAY_SECONDS, "d")):
        if whole < limit:
            return f"{whole // size}{unit}"
    return f"{whole // (365 * _DAY_SECONDS)}y"


def age(created: str, now: float) -> str:
    """The AGE column for a creationTimestamp: ``<unknown>`` where there is none."""
    if not created:
        return "<unknown>"
    return human_duration(now - parse_time(created).timestamp())
