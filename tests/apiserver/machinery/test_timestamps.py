"""Times, durations and ages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import timestamps


def test_times_are_shown_in_utc_to_the_second() -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)
    assert timestamps.format_time(moment) == "2024-01-02T03:04:05Z"
    assert timestamps.format_micro_time(moment) == "2024-01-02T03:04:05.678901Z"
    assert timestamps.format_micro_time(moment.replace(microsecond=0)) == "2024-01-02T03:04:05.000000Z"
    assert timestamps.format_time(moment.timestamp()) == "2024-01-02T03:04:05Z"
    assert timestamps.canonical_time("2024-01-02T03:04:05.9+02:00") == "2024-01-02T01:04:05Z"
    assert timestamps.canonical_micro_time("2024-01-02T03:04:05.000001-01:00") == "2024-01-02T04:04:05.000001Z"


LAYOUT = '" as "2006-01-02T15:04:05Z07:00": cannot parse "'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", f'parsing time "x{LAYOUT}x" as "2006"'),
        ("", f'parsing time "{LAYOUT}" as "2006"'),
        ("2024", f'parsing time "2024{LAYOUT}" as "-"'),
        ("2024-1-02", f'parsing time "2024-1-02{LAYOUT}1-02" as "01"'),
        ("2024-01-02 03:04:05Z", f'parsing time "2024-01-02 03:04:05Z{LAYOUT} 03:04:05Z" as "T"'),
        ("2024-01-02T03:04:05", f'parsing time "2024-01-02T03:04:05{LAYOUT}" as "Z07:00"'),
        ("2024-13-02T03:04:05Z", 'parsing time "2024-13-02T03:04:05Z": month out of range'),
        ("2024-02-30T03:04:05Z", 'parsing time "2024-02-30T03:04:05Z": day out of range'),
        ("2024-01-02T24:04:05Z", 'parsing time "2024-01-02T24:04:05Z": hour out of range'),
        ("2024-01-02T03:04:60Z", 'parsing time "2024-01-02T03:04:60Z": second out of range'),
        ("2024-01-02T03:04:05Zz", 'parsing time "2024-01-02T03:04:05Zz": extra text: "z"'),
    ],
)
def test_what_is_no_time(text: str, message: str) -> None:
    with pytest.raises(timestamps.TimestampError) as e:
        timestamps.parse_time(text)
    assert str(e.value) == message


def test_a_micro_time_needs_six_digits() -> None:
    with pytest.raises(timestamps.TimestampError, match=r'cannot parse "Z" as ".000000"$'):
        timestamps.parse_micro_time("2024-01-02T03:04:05Z")


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)))
def test_times_survive_their_text(moment: datetime) -> None:
    assert timestamps.parse_micro_time(timestamps.format_micro_time(moment)) == moment
    assert timestamps.parse_time(timestamps.format_time(moment)) == moment.replace(microsecond=0)


@given(st.text(alphabet="0123456789-:TZ.+ ", max_size=26))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    for read in (timestamps.parse_time, timestamps.parse_micro_time, timestamps.parse_duration):
        try:
            read(text)
        except timestamps.TimestampError as e:
            assert str(e)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "shown"),
    [
        ("0", 0, "0s"),
        ("1h30m", 5400 * 10**9, "1h30m0s"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("-2m3.5s", -123_500_000_000, "-2m3.5s"),
        ("100ms", 100_000_000, "100ms"),
        ("1.5us", 1500, "1.5µs"),
        ("3ns", 3, "3ns"),
        (".5m", 30 * 10**9, "30s"),
    ],
)
def test_durations(text: str, nanoseconds: int, shown: str) -> None:
    assert timestamps.parse_duration(text) == nanoseconds
    assert timestamps.format_duration(nanoseconds) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("5", 'time: missing unit in duration "5"'),
        ("5x", 'time: unknown unit "x" in duration "5x"'),
        (".s", 'time: invalid duration ".s"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_what_is_no_duration(text: str, message: str) -> None:
    with pytest.raises(timestamps.TimestampError) as e:
        timestamps.parse_duration(text)
    assert str(e.value) == message


@given(st.integers(-(2**62), 2**62))
def test_durations_survive_their_text(nanoseconds: int) -> None:
    assert timestamps.parse_duration(timestamps.format_duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-0.5), "0s"),
        (timedelta(seconds=1), "1s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=3, seconds=20), "3m20s"),
        (timedelta(minutes=10, seconds=20), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=5), "7h5m"),
        (timedelta(hours=8, minutes=5), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=48), "2d"),
        (timedelta(days=2, hours=3), "2d3h"),
        (timedelta(days=8, hours=3), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=365 * 9 + 3), "9y"),
    ],
)
def test_ages(age: timedelta, shown: str) -> None:
    assert timestamps.human_duration(age.total_seconds()) == shown


def test_short_ages_and_ages_of_objects() -> None:
    assert [timestamps.short_human_duration(s) for s in (59, 60, 7199, 90000, 366 * 86400)] == ["59s", "1m", "1h", "1d", "1y"]
    assert timestamps.age("", 0) == "<unknown>"
    assert timestamps.age("1970-01-01T00:00:10Z", 100) == "90s"
