"""Cron expressions on a wall clock without a zone."""

import calendar
from datetime import datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.domain.calendar import day_number, days_in, weekday, year_month_day
from perdure.domain.cron import ALIASES, CRON_MAX_CHARS, Cron, following, parse_cron
from perdure.errors import Invalid

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  A wall clock has no zone.
END = 4_000_000_000


def times(text: str, after: str, count: int = 4) -> list[str]:
    """The next times that an expression names."""
    cron = parse_cron(text)
    at = round((datetime.fromisoformat(after) - EPOCH).total_seconds())
    return [(EPOCH + timedelta(seconds=each)).isoformat(" ") for each in islice(walk(cron, at + 1), count)]


def walk(cron: Cron, at: int):
    found = following(cron, at, END)
    while found is not None:
        yield found
        found = following(cron, found + 1, END)


@given(st.integers(-700_000, 2_900_000))
def test_days_are_those_of_the_calendar(number: int):
    year, month, day = year_month_day(number)
    assert day_number(year, month, day) == number
    if 1 <= year <= 9999:
        moment = EPOCH + timedelta(days=number)
        assert (moment.year, moment.month, moment.day) == (year, month, day)
        assert weekday(number) == (moment.weekday() + 1) % 7
        assert days_in(year, month) == calendar.monthrange(year, month)[1]


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("*/15 * * * *", "2026-01-01 23:40:00", ["2026-01-01 23:45:00", "2026-01-02 00:00:00"]),
        ("0 3 * * *", "2026-01-01 03:00:00", ["2026-01-02 03:00:00", "2026-01-03 03:00:00"]),
        ("*/20 30 4 * * *", "2026-01-01 04:30:20", ["2026-01-01 04:30:40", "2026-01-02 04:30:00"]),
        ("0 9-17/4 * * MON-FRI", "2026-01-02 13:00:00", ["2026-01-02 17:00:00", "2026-01-05 09:00:00"]),
        ("0 0 29 2 *", "2026-01-01", ["2028-02-29 00:00:00", "2032-02-29 00:00:00"]),
        ("0 0 31 * *", "2026-01-31", ["2026-03-31 00:00:00", "2026-05-31 00:00:00"]),
        ("5 4 1 JAN,jul *", "2026-01-01 04:05:00", ["2026-07-01 04:05:00", "2027-01-01 04:05:00"]),
        ("0 0 * * 7", "2026-01-01", ["2026-01-04 00:00:00", "2026-01-11 00:00:00"]),
        ("0 0 * * SAT-SUN", "2026-01-01", ["2026-01-03 00:00:00", "2026-01-04 00:00:00"]),
        ("0 12 L * *", "2028-02-01", ["2028-02-29 12:00:00", "2028-03-31 12:00:00"]),
        ("0 12 LW * *", "2026-01-01", ["2026-01-30 12:00:00", "2026-02-27 12:00:00"]),
        ("0 12 * * TUE#2", "2026-01-01", ["2026-01-13 12:00:00", "2026-02-10 12:00:00"]),
        ("0 12 * * FRI#5", "2026-02-01", ["2026-05-29 12:00:00", "2026-07-31 12:00:00"]),
        ("0 12 * * 5L", "2026-01-01", ["2026-01-30 12:00:00", "2026-02-27 12:00:00"]),
        ("10/25 * * * *", "2026-01-01", ["2026-01-01 00:10:00", "2026-01-01 00:35:00"]),
        ("0 0 ? * ?", "2026-01-01", ["2026-01-02 00:00:00", "2026-01-03 00:00:00"]),
    ],
)
def test_the_next_times_are_those_that_the_expression_names(text: str, after: str, expected: list[str]):
    assert times(text, after, len(expected)) == expected


def test_where_day_and_weekday_are_given_one_of_them_is_enough():
    assert times("0 0 13 * FRI", "2026-02-06", 3) == [
        "2026-02-13 00:00:00",
        "2026-02-20 00:00:00",
        "2026-02-27 00:00:00",
    ]
    assert times("0 0 13 * *", "2026-02-06", 1) == ["2026-02-13 00:00:00"]
    assert times("0 0 */2 * MON", "2026-02-01", 2) == ["2026-02-09 00:00:00", "2026-02-23 00:00:00"]


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_an_alias_is_the_expression_that_it_stands_for(alias: str):
    assert parse_cron(alias.upper())._replace(text="") == parse_cron(ALIASES[alias])._replace(text="")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "5 fields"),
        ("* * * *", "5 fields"),
        ("* * * * * * *", "5 fields"),
        ("60 * * * *", "minute must be 0 to 59"),
        ("* 24 * * *", "hour must be 0 to 23"),
        ("* * 0 * *", "day of month must be 1 to 31"),
        ("* * * 13 *", "month must be 1 to 12"),
        ("* * * * 8", "weekday must be 0 to 7"),
        ("* * * * FRI#6", "first to a fifth"),
        ("* * * FOO *", "JAN-DEC"),
        ("5-1 * * * *", "goes upwards"),
        ("*/0 * * * *", "a step is a number"),
        ("*/90 * * * *", "longer distances use `every`"),
        ("*-5 * * * *", "a range begins"),
        ("1,,2 * * * *", "cannot be read"),
        ("1.5 * * * *", "cannot be read"),
        ("-1 * * * *", "cannot be read"),
        ("\u0661 * * * *", "minute must be"),
        ("@reboot", "no alias"),
        ("0 0 30 2 *", "no day that there is"),
        ("0 0 31 4,6,9,11 *", "no day that there is"),
        ("0 " * CRON_MAX_CHARS, "at most"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(text: str, fact: str):
    with pytest.raises(Invalid, match=fact) as refusal:
        parse_cron(text)
    assert refusal.value.field == "cron"


fields = st.tuples(
    st.sampled_from(["*", "*/7", "0", "3,50", "10-20/3"]),
    st.sampled_from(["*", "*/5", "0", "23", "8-10"]),
    st.sampled_from(["*", "1", "29", "31", "L", "LW", "*/9", "10-12"]),
    st.sampled_from(["*", "2", "4-6", "*/5"]),
    st.sampled_from(["*", "0", "MON-FRI", "3#5", "6L", "2,4#1"]),
)


@settings(max_examples=60, deadline=None)
@given(fields, st.integers(0, 86_400 * 365 * 60))
def test_nothing_that_an_expression_names_is_left_out_and_nothing_else_is_named(parts, start: int):
    try:
        cron = parse_cron(" ".join(parts))
    except Invalid:
        return
    start -= start % 60
    end = start + 86_400 * 3
    found = following(cron, start, end)
    for at in range(start, end, 60):
        if plainly_named(cron, at):
            assert found == at
            found = following(cron, at + 1, end)
    assert found is None


def plainly_named(cron: Cron, at: int) -> bool:
    """The same by the library's calendar, looked at minute by minute."""
    moment = EPOCH + timedelta(seconds=at)
    on, length = (moment.weekday() + 1) % 7, calendar.monthrange(moment.year, moment.month)[1]
    by_weekday = on in cron.weekdays or any(
        on == day and (moment.day > length - 7 if nth < 0 else (moment.day + 6) // 7 == nth)
        for day, nth in cron.nth_weekdays
    )
    working = [d for d in range(1, length + 1) if calendar.weekday(moment.year, moment.month, d) < 5]
    by_day = (
        moment.day in cron.days
        or (cron.last_day and moment.day == length)
        or (cron.last_working_day and moment.day == working[-1])
    )
    on_day = by_day or by_weekday if cron.either else by_day and by_weekday
    return moment.month in cron.months and on_day and moment.hour in cron.hours and moment.minute in cron.minutes
