"""When something is to happen: at the times of a cron expression in a time zone, in even intervals, or once.

Instants are microseconds since 1970 UTC and fall on whole seconds, except those of intervals.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Literal, NamedTuple, Protocol

from perdure.domain.cron import SEARCH_YEARS, Cron, following
from perdure.domain.limits import SECOND_US

Gap = Literal["after", "skip"]
GAPS: tuple[Gap, ...] = ("after", "skip")
Fold = Literal["first", "both"]
FOLDS: tuple[Fold, ...] = ("first", "both")

SEARCH_S = SEARCH_YEARS * 366 * 86_400
END_US = 253_370_764_800 * SECOND_US
"""The year 9999: nothing comes from then on, nor before 1970."""


class Period(NamedTuple):
    """A time in which a zone's clock is set one way. Seconds since 1970 UTC; offsets are east of UTC."""

    start: int
    """When the clock was set so; or any earlier instant since when it is, two days or more ago."""
    end: int
    """It is set so until then at least."""
    offset: int
    before: int
    """How it was set just before `start`; `offset` where nothing changed then."""


class Zone(Protocol):
    """A time zone."""

    @property
    def name(self) -> str:
        """As in the time zone database."""

    def period(self, instant_s: int) -> Period:
        """How the clock is set at an instant."""


class WallClock(NamedTuple):
    """The times of a cron expression on a zone's clock.

    `gap`: a time that the clock skips is made up for at the end of the gap (`after`, once however many there were), or
    not (`skip`). `fold`: a time that the clock shows twice counts the first time only (`first`), or each (`both`).
    """

    cron: Cron
    zone: Zone
    gap: Gap
    fold: Fold


class Every(NamedTuple):
    """Even intervals, counted from an anchor: clocks that are set do not touch them."""

    every_us: int
    anchor_us: int


class Once(NamedTuple):
    """One instant."""

    at_us: int


class Timing(NamedTuple):
    """The instants of `rule`, from `start_us` on and before `end_us` where those are given."""

    rule: WallClock | Every | Once
    start_us: int | None = None
    end_us: int | None = None


def gap_of(cron: Cron, said: Gap | None) -> Gap:
    """What holds in a gap: a daily run is not left out by default, what runs by the hour has no time to make up for."""
    return said or ("skip" if cron.by_the_hour else "after")


def fold_of(cron: Cron, said: Fold | None) -> Fold:
    """What holds in a fold: a daily run is once by default, what runs by the hour goes on hour by hour."""
    return said or ("both" if cron.by_the_hour else "first")


def instants(timing: Timing, after_us: int) -> Iterator[int]:
    """All instants after one, in order and each once. Pure; may be very many, or none."""
    after_us = max(after_us, -1 if timing.start_us is None else timing.start_us - 1)
    end_us = END_US if timing.end_us is None else min(END_US, timing.end_us)
    if after_us >= end_us:
        return iter(())
    rule = timing.rule
    if isinstance(rule, Once):
        found = iter((rule.at_us,) if rule.at_us > after_us else ())
    elif isinstance(rule, Every):
        found = _intervals(rule, after_us)
    else:
        found = _times(rule, after_us // SECOND_US + 1)
    return takewhile(lambda instant: instant < end_us, found)


def next_instant(timing: Timing, after_us: int) -> int | None:
    """The first instant after one; `None` when there is no more."""
    return next(instants(timing, after_us), None)


def _intervals(rule: Every, after_us: int) -> Iterator[int]:
    instant = rule.anchor_us + max(0, (after_us - rule.anchor_us) // rule.every_us + 1) * rule.every_us
    while True:
        yield instant
        instant += rule.every_us


def _times(rule: WallClock, at: int) -> Iterator[int]:
    """From `at` on, period by period: within one, the clock runs evenly."""
    last = at + SEARCH_S
    while at < min(last, END_US // SECOND_US):
        period = rule.zone.period(at)
        low = at + period.offset
        if period.before > period.offset and rule.fold == "first":
            low = max(low, period.start + period.before)
        elif at <= period.start and _is_in_gap(rule, period):
            yield period.start * SECOND_US
            last = at + SEARCH_S
            low += 1
        high = period.end + period.offset
        found = following(rule.cron, low, high)
        while found is not None:
            yield (found - period.offset) * SECOND_US
            last = at + SEARCH_S
            found = following(rule.cron, found + 1, high)
        at = period.end


def _is_in_gap(rule: WallClock, period: Period) -> bool:
    """Whether the clock skipped a time before this period that is to be made up for."""
    first, end = period.start + period.before, period.start + period.offset
    return rule.gap == "after" and first < end and following(rule.cron, first, end) is not None
