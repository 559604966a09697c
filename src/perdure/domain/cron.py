"""Cron expressions: five fields, or six with seconds in front, and the aliases. Pure: a wall clock without a zone.

minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, weekday 0-7 or SUN-SAT (0 and 7 are Sunday). A field
is a list of values, ranges `a-b`, steps `*/n`, `a/n`, `a-b/n`, or `*`. A day of month may be `L` (the last), `LW` (the
last that is no Saturday or Sunday); a weekday may be `FRI#2` (the second in the month) or `FRIL` (the last). Where both
day of month and weekday are given, a day has to meet only one of them, as cron has always done.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, NoReturn

from perdure.domain.calendar import DAY_S, day_number, days_in, weekday, year_month_day
from perdure.errors import Invalid

ALIASES: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
CRON_MAX_CHARS = 200
SEARCH_YEARS = 60
"""The calendar repeats itself after 28 years, and a century without a leap day adds 12."""

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_PIECE = re.compile(r"(?P<low>\*|\w+)(?:-(?P<high>\w+))?(?:/(?P<step>\w+))?")
_NTH = re.compile(r"(?P<day>\w+)#(?P<nth>[0-9]+)")
_NUMBER = re.compile(r"[0-9]{1,4}")
_ANY = ("*", "?")
_FRIDAY, _SATURDAY, _SUNDAY = 5, 6, 0


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    words: Sequence[str] = ()
    first_word: int = 0


_SECOND = _Field("second", 0, 59)
_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day of month", 1, 31)
_MONTH = _Field("month", 1, 12, _MONTHS, 1)
_WEEKDAY = _Field("weekday", 0, 7, _WEEKDAYS, 0)


class Cron(NamedTuple):
    """An expression that was understood."""

    text: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    """Weekday and its place in the month; -1 for the last."""
    last_day: bool
    last_working_day: bool
    either: bool
    """A day has to meet its day of month or its weekday, not both."""
    by_the_hour: bool
    """It does not name its hours: what it means is a distance, not a time of day."""


def parse_cron(text: str) -> Cron:
    """Understand an expression. Raises `Invalid` that says which field is wrong and why."""
    if not isinstance(text, str) or len(text) > CRON_MAX_CHARS:
        raise Invalid(f"cron must be a text of at most {CRON_MAX_CHARS} characters", field="cron")
    said = text.strip()
    if said.startswith("@"):
        expression = ALIASES.get(said.lower())
        if expression is None:
            _refuse(f"there is no alias {said!r}; the aliases are {', '.join(ALIASES)}")
    else:
        expression = said
    fields = expression.split()
    if len(fields) not in (5, 6):
        _refuse(f"a cron expression has 5 fields, or 6 with seconds in front, not {len(fields)}")
    second, minute, hour, day, month, on = fields if len(fields) == 6 else ["0", *fields]
    days, last_day, last_working_day = _days_of_month(day)
    weekdays, nth_weekdays = _weekdays(on)
    cron = Cron(
        text=said,
        seconds=_values(second, _SECOND),
        minutes=_values(minute, _MINUTE),
        hours=_values(hour, _HOUR),
        days=days,
        months=frozenset(_values(month, _MONTH)),
        weekdays=weekdays,
        nth_weekdays=nth_weekdays,
        last_day=last_day,
        last_working_day=last_working_day,
        either=not day.startswith(_ANY) and not on.startswith(_ANY),
        by_the_hour=hour.startswith("*"),
    )
    if following(cron, 0, day_number(1970 + SEARCH_YEARS, 1, 1) * DAY_S) is None:
        _refuse(f"{said!r} names no day that there is")
    return cron


def _days_of_month(text: str) -> tuple[frozenset[int], bool, bool]:
    days: set[int] = set()
    last = working = False
    for piece in text.upper().split(","):
        if piece == "L":
            last = True
        elif piece == "LW":
            working = True
        else:
            days.update(_values("*" if piece == "?" else piece, _DAY))
    return frozenset(days), last, working


def _weekdays(text: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    plain: set[int] = set()
    nth: set[tuple[int, int]] = set()
    for piece in text.upper().split(","):
        match = _NTH.fullmatch(piece)
        if match is not None:
            if match["nth"] not in ("1", "2", "3", "4", "5"):
                _refuse(f"weekday {piece!r}: a month has a first to a fifth of each weekday")
            nth.add((_value(match["day"], _WEEKDAY) % 7, int(match["nth"])))
        elif len(piece) > 1 and piece.endswith("L"):
            nth.add((_value(piece[:-1], _WEEKDAY) % 7, -1))
        else:
            plain.update(value % 7 for value in _values("*" if piece == "?" else piece, _WEEKDAY))
    return frozenset(plain), frozenset(nth)


def _values(text: str, field: _Field) -> tuple[int, ...]:
    """What a field allows, in order."""
    allowed: set[int] = set()
    for piece in text.split(","):
        match = _PIECE.fullmatch(piece)
        if match is None:
            _refuse(f"{field.name} {text!r} cannot be read: write values, a-b, */n or *, with commas between")
        allowed.update(_of_piece(match, piece, field))
    return tuple(sorted(allowed))


def _of_piece(match: re.Match[str], piece: str, field: _Field) -> range:
    low, high, step = match["low"], match["high"], match["step"]
    if low == "*":
        if high is not None:
            _refuse(f"{field.name} {piece!r}: a range begins with a value")
        first, last = field.low, min(field.high, 6) if field is _WEEKDAY else field.high
    else:
        first = _value(low, field)
        last = _value(high, field) if high is not None else first if step is None else field.high
        if field is _WEEKDAY and high is not None and last == 0 and first > 0:
            last = 7
        if last < first:
            _refuse(f"{field.name} {piece!r}: a range goes upwards, write {first}-{field.high},{field.low}-{last}")
    return range(first, last + 1, 1 if step is None else _step(step, piece, field))


def _step(text: str, piece: str, field: _Field) -> int:
    span = field.high - field.low
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= span:
        _refuse(f"{field.name} {piece!r}: a step is a number from 1 to {span}; for longer distances use `every`")
    return int(text)


def _value(text: str, field: _Field) -> int:
    word = text.upper()
    if word in field.words:
        return field.words.index(word) + field.first_word
    if not _NUMBER.fullmatch(text) or not field.low <= int(text) <= field.high:
        names = f" or {field.words[0]}-{field.words[-1]}" if field.words else ""
        _refuse(f"{field.name} must be {field.low} to {field.high}{names}, not {text!r}")
    return int(text)


def _refuse(fact: str) -> NoReturn:
    raise Invalid(f"cron: {fact}", field="cron")


def following(cron: Cron, at: int, before: int) -> int | None:
    """The first second of the wall clock, from `at` on and before `before`, that the expression names.

    Seconds of a wall clock count from 1970-01-01 00:00 on that clock.
    """
    number, second = divmod(at, DAY_S)
    found = _in_day(cron, second)
    year, month, day = year_month_day(number)
    first = day if found is not None else day + 1
    if found is None:
        found = _in_day(cron, 0)
    while True:
        days = _days_in_month(cron, year, month)
        place = bisect_left(days, first)
        if place < len(days):
            if days[place] != day:
                found = _in_day(cron, 0)
            result = day_number(year, month, days[place]) * DAY_S + (found or 0)
            return result if result < before else None
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        first, day = 1, 0
        if day_number(year, month, 1) * DAY_S >= before:
            return None


def _in_day(cron: Cron, second: int) -> int | None:
    """The first second of a day, from `second` on, that the expression names."""
    hour, rest = divmod(second, 3600)
    minute, second = divmod(rest, 60)
    for each in cron.hours[bisect_left(cron.hours, hour) :]:
        if each > hour:
            return each * 3600 + cron.minutes[0] * 60 + cron.seconds[0]
        for of_hour in cron.minutes[bisect_left(cron.minutes, minute) :]:
            if of_hour > minute:
                return each * 3600 + of_hour * 60 + cron.seconds[0]
            place = bisect_left(cron.seconds, second)
            if place < len(cron.seconds):
                return each * 3600 + of_hour * 60 + cron.seconds[place]
    return None


@lru_cache(maxsize=4096)
def _days_in_month(cron: Cron, year: int, month: int) -> tuple[int, ...]:
    """The days of a month that the expression names, in order."""
    if month not in cron.months:
        return ()
    length = days_in(year, month)
    begin = day_number(year, month, 1)
    return tuple(day for day in range(1, length + 1) if _names(cron, day, length, weekday(begin + day - 1)))


def _names(cron: Cron, day: int, length: int, on: int) -> bool:
    by_day = day in cron.days or (cron.last_day and day == length) or _is_last_working(cron, day, length, on)
    by_weekday = (
        on in cron.weekdays
        or (on, (day - 1) // 7 + 1) in cron.nth_weekdays
        or (day + 7 > length and (on, -1) in cron.nth_weekdays)
    )
    return by_day or by_weekday if cron.either else by_day and by_weekday


def _is_last_working(cron: Cron, day: int, length: int, on: int) -> bool:
    if not cron.last_working_day or on in (_SATURDAY, _SUNDAY):
        return False
    return day == length or (on == _FRIDAY and day + 2 >= length)
