"""Timestamps and durations: text to value and back as Go does it, arithmetic with its overflows, the parts of a date."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from apiserver.cel.errors import EvaluationError
from apiserver.cel.values import INT_MAX, INT_MIN, NANOSECONDS, TIMESTAMP_MAX, TIMESTAMP_MIN, Duration, Timestamp
from apiserver.machinery import timestamps

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:(Z)|([+-])(\d{2}):(\d{2}))", re.ASCII).fullmatch
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+\-]+(?:/[A-Za-z0-9_+\-]+){0,2}", re.ASCII).fullmatch
_AMOUNT = re.compile(r"([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)").findall
_WRITTEN_UNITS = {
    **dict.fromkeys(("ns", "nano"), 1), **dict.fromkeys(("us", "µs", "micro"), 1_000), **dict.fromkeys(("ms", "milli"), 1_000_000),
    **dict.fromkeys(("s", "sec"), NANOSECONDS), **dict.fromkeys(("m", "min"), 60 * NANOSECONDS),
    **dict.fromkeys(("h", "hr", "hour"), 3_600 * NANOSECONDS), **dict.fromkeys(("d", "day"), 86_400 * NANOSECONDS),
    **dict.fromkeys(("w", "wk", "week"), 604_800 * NANOSECONDS),
}  # fmt: skip


def parse_timestamp(text: str) -> Timestamp | None:
    """An RFC 3339 text; None where it is none.

    Raises:
        EvaluationError: for a moment outside of the years 1 to 9999.
    """
    found = _RFC3339(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    offset = 0
    if found[8] is None:
        if int(found[10]) > 24 or int(found[11]) > 60:
            return None
        offset = (int(found[10]) * 3600 + int(found[11]) * 60) * (-1 if found[9] == "-" else 1)
    try:
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    if year == 0:
        raise EvaluationError("timestamp overflow")
    seconds = _whole_seconds(moment)
    fraction = int((found[7] or "0")[:9].ljust(9, "0"))
    return in_range((seconds - offset) * NANOSECONDS + fraction, offset)


def _whole_seconds(moment: datetime) -> int:
    passed = moment - _EPOCH
    return passed.days * 86_400 + passed.seconds


def in_range(nanoseconds: int, offset: int = 0) -> Timestamp:
    """A timestamp, unless it lies outside of the years 1 to 9999."""
    if not TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds, offset)


def parse_date(text: str) -> Timestamp | None:
    """A date (`2006-01-02`) as the moment it begins in UTC."""
    return parse_timestamp(f"{text}T00:00:00Z") if len(text) == 10 else None


def format_timestamp(value: Timestamp) -> str:
    """Go's RFC3339Nano."""
    seconds, fraction = divmod(value.nanoseconds, NANOSECONDS)
    moment = _EPOCH + timedelta(seconds=seconds + value.offset)
    text = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    if fraction:
        text += f".{fraction:09d}".rstrip("0")
    if value.offset == 0:
        return text + "Z"
    hours, minutes = divmod(abs(value.offset) // 60, 60)
    return f"{text}{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def parse_duration(text: str) -> Duration | None:
    """A Go duration (`1h30m`); None where it is none."""
    try:
        return Duration(timestamps.parse_duration(text))
    except timestamps.TimestampError:
        return None


def parse_written_duration(text: str) -> Duration | None:
    """What schemas call a duration: Go's, or amounts with units written out (`3 days`)."""
    found = parse_duration(text)
    if found is not None:
        return found
    total, known = 0, False
    for amount, unit in _AMOUNT(text):
        size = _WRITTEN_UNITS.get(unit.lower()) or next(
            (
                _WRITTEN_UNITS[name]
                for name in ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
                if unit.lower().startswith(name)
            ),
            None,
        )
        if size is not None and len(amount) <= 20:
            total, known = total + int(amount) * size, True
    return Duration(total) if known and total <= INT_MAX else None


def format_duration(value: Duration) -> str:
    """The seconds in decimals, as cel-go turns a duration into a string."""
    sign, amount = ("-", -value.nanoseconds) if value.nanoseconds < 0 else ("", value.nanoseconds)
    seconds = float(amount // NANOSECONDS) + (amount % NANOSECONDS) / 1e9
    text = format(seconds, "f") if seconds == int(seconds) else repr(seconds)
    if "e" in text:
        text = f"{seconds:.20f}".rstrip("0")
        text = _shortest(seconds, text)
    return f"{sign}{text.rstrip('0').rstrip('.') if '.' in text else text}s"


def _shortest(seconds: float, text: str) -> str:
    """The shortest decimals that still name this number."""
    for digits in range(1, 20):
        candidate = f"{seconds:.{digits}f}"
        if float(candidate) == seconds:
            return candidate
    return text


# --- arithmetic ------------------------------------------------------------------------------------------------------------------


def _duration(nanoseconds: int) -> Duration:
    if not INT_MIN <= nanoseconds <= INT_MAX:
        raise EvaluationError("integer overflow")
    return Duration(nanoseconds)


def add_duration_duration(left: Duration, right: Duration) -> Duration:
    return _duration(left.nanoseconds + right.nanoseconds)


def add_timestamp_duration(left: Timestamp, right: Duration) -> Timestamp:
    return in_range(left.nanoseconds + right.nanoseconds, left.offset)


def add_duration_timestamp(left: Duration, right: Timestamp) -> Timestamp:
    return in_range(left.nanoseconds + right.nanoseconds, right.offset)


def subtract_duration_duration(left: Duration, right: Duration) -> Duration:
    return _duration(left.nanoseconds - right.nanoseconds)


def subtract_timestamp_duration(left: Timestamp, right: Duration) -> Timestamp:
    if right.nanoseconds == INT_MIN:
        raise EvaluationError("integer overflow")
    return in_range(left.nanoseconds - right.nanoseconds, left.offset)


def subtract_timestamp_timestamp(left: Timestamp, right: Timestamp) -> Duration:
    return _duration(left.nanoseconds - right.nanoseconds)


# --- parts of a date -------------------------------------------------------------------------------------------------------------


def zone_of(name: str) -> tzinfo:
    """A time zone by its IANA name or its distance from UTC (`-08:00`, `5:30`)."""
    hours, colon, minutes = name.partition(":")
    if colon:
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", hours):
            raise EvaluationError(f'strconv.Atoi: parsing "{hours}": invalid syntax')
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", minutes):
            raise EvaluationError(f'strconv.Atoi: parsing "{minutes}": invalid syntax')
        offset = int(hours) * 60 + (-int(minutes) if name[0] == "-" else int(minutes))
        if abs(offset) >= 24 * 60:
            raise EvaluationError(f"timezone offset out of range: {name}")
        return timezone(timedelta(minutes=offset))
    if name in ("", "UTC"):
        return UTC
    if not _ZONE_NAME(name) or name == "Local":
        raise EvaluationError(f"unknown time zone {name}" if ".." not in name else "time: invalid location name")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _moment(value: Timestamp, zone: tzinfo) -> datetime:
    moment = _EPOCH + timedelta(seconds=value.nanoseconds // NANOSECONDS)
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(value: Timestamp, zone: str = "UTC") -> int:
        return read(_moment(value, zone_of(zone)))

    return part


PARTS: dict[str, tuple[str, Callable[..., int]]] = {
    "getFullYear": ("year", _part(lambda moment: moment.year)),
    "getMonth": ("month", _part(lambda moment: moment.month - 1)),
    "getDayOfYear": ("day_of_year", _part(lambda moment: moment.timetuple().tm_yday - 1)),
    "getDayOfMonth": ("day_of_month", _part(lambda moment: moment.day - 1)),
    "getDate": ("day_of_month_1_based", _part(lambda moment: moment.day)),
    "getDayOfWeek": ("day_of_week", _part(lambda moment: moment.isoweekday() % 7)),
    "getHours": ("hours", _part(lambda moment: moment.hour)),
    "getMinutes": ("minutes", _part(lambda moment: moment.minute)),
    "getSeconds": ("seconds", _part(lambda moment: moment.second)),
}


def milliseconds_of(value: Timestamp, zone: str = "UTC") -> int:
    """The milliseconds within the second."""
    zone_of(zone)
    return value.nanoseconds % NANOSECONDS // 1_000_000


def whole(value: Duration, unit: int) -> int:
    """How many whole units (of `unit` nanoseconds) a duration has; what is over is cut off towards zero."""
    amount = abs(value.nanoseconds) // unit
    return -amount if value.nanoseconds < 0 else amount
