"""When schedules come: golden times of gaps and folds, and all zones of the time zone database for five years."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.cron import Cron, following, parse_cron
from perdure.domain.limits import SECOND_US
from perdure.domain.timing import Every, Once, Timing, WallClock, fold_of, gap_of, instants, next_instant
from perdure.engine.zones import Zones
from perdure.errors import Invalid

ZONES = Zones()
FROM, UNTIL = 2024, 2029
"""The years that are looked at, and the first one after them."""


def wall(text: str, zone: str, gap=None, fold=None) -> Timing:
    cron = parse_cron(text)
    return Timing(WallClock(cron, ZONES(zone), gap_of(cron, gap), fold_of(cron, fold)))


def at_us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * SECOND_US


def shown(timing: Timing, zone: str, after: str, count: int) -> list[str]:
    """The next instants as that zone's clock shows them, the hour's offset included."""
    info = zoneinfo.ZoneInfo(zone)
    found = islice(instants(timing, at_us(after)), count)
    return [datetime.fromtimestamp(each / SECOND_US, info).isoformat(" ", "minutes") for each in found]


GOLDEN = [
    # A daily run in a gap comes at its end, once; and not at all where that was chosen.
    (
        "30 2 * * *", "Europe/Berlin", {}, "2026-03-28T00:00+00:00",
        ["2026-03-28 02:30+01:00", "2026-03-29 03:00+02:00", "2026-03-30 02:30+02:00"],
    ),
    (
        "30 2 * * *", "Europe/Berlin", {"gap": "skip"}, "2026-03-28T00:00+00:00",
        ["2026-03-28 02:30+01:00", "2026-03-30 02:30+02:00", "2026-03-31 02:30+02:00"],
    ),
    # Several times in the gap are made up for once, and not beside one that is at its end anyhow.
    (
        "*/20 2,3 * * *", "America/New_York", {}, "2026-03-08T01:59-05:00",
        ["2026-03-08 03:00-04:00", "2026-03-08 03:20-04:00", "2026-03-08 03:40-04:00", "2026-03-09 02:00-04:00"],
    ),
    (
        "*/20 2 * * *", "America/New_York", {}, "2026-03-08T01:59-05:00",
        ["2026-03-08 03:00-04:00", "2026-03-09 02:00-04:00"],
    ),
    # A daily run in a fold comes the first time; both times where that was chosen.
    (
        "30 1 * * *", "America/New_York", {}, "2026-11-01T00:00-04:00",
        ["2026-11-01 01:30-04:00", "2026-11-02 01:30-05:00"],
    ),
    (
        "30 1 * * *", "America/New_York", {"fold": "both"}, "2026-11-01T00:00-04:00",
        ["2026-11-01 01:30-04:00", "2026-11-01 01:30-05:00", "2026-11-02 01:30-05:00"],
    ),
    # What runs by the hour goes on by the hour, in both.
    (
        "30 * * * *", "Europe/Berlin", {}, "2026-03-29T00:00+01:00",
        ["2026-03-29 00:30+01:00", "2026-03-29 01:30+01:00", "2026-03-29 03:30+02:00"],
    ),
    (
        "0 * * * *", "Europe/Berlin", {}, "2026-10-25T01:30+02:00",
        ["2026-10-25 02:00+02:00", "2026-10-25 02:00+01:00", "2026-10-25 03:00+01:00"],
    ),
    (
        "0 * * * *", "Europe/Berlin", {"fold": "first"}, "2026-10-25T01:30+02:00",
        ["2026-10-25 02:00+02:00", "2026-10-25 03:00+01:00"],
    ),
    # Half an hour on Lord Howe Island; two hours at Troll.
    (
        "15 2 * * *", "Australia/Lord_Howe", {}, "2026-10-03T12:00+00:00",
        ["2026-10-04 02:30+11:00", "2026-10-05 02:15+11:00"],
    ),
    (
        "45 1 * * *", "Australia/Lord_Howe", {"fold": "both"}, "2026-04-04T12:00+00:00",
        ["2026-04-05 01:45+11:00", "2026-04-05 01:45+10:30", "2026-04-06 01:45+10:30"],
    ),
    (
        "0 2 * * *", "Antarctica/Troll", {"fold": "both"}, "2026-10-24T12:00+00:00",
        ["2026-10-25 02:00+02:00", "2026-10-25 02:00+00:00", "2026-10-26 02:00+00:00"],
    ),
    # A midnight that there is not, in Cairo and in Beirut; a day that there was not, on Samoa.
    (
        "0 0 * * *", "Africa/Cairo", {}, "2026-04-23T12:00+00:00",
        ["2026-04-24 01:00+03:00", "2026-04-25 00:00+03:00"],
    ),
    (
        "0 12 * * *", "Pacific/Apia", {}, "2011-12-29T13:00-10:00",
        ["2011-12-31 00:00+14:00", "2011-12-31 12:00+14:00"],
    ),
    (
        "0 12 * * *", "Pacific/Apia", {"gap": "skip"}, "2011-12-29T13:00-10:00",
        ["2011-12-31 12:00+14:00", "2012-01-01 12:00+14:00"],
    ),
    # Dublin's winter is its exception, and Morocco changes for Ramadan.
    (
        "30 1 * * *", "Europe/Dublin", {}, "2026-03-28T12:00+00:00",
        ["2026-03-29 02:00+01:00", "2026-03-30 01:30+01:00"],
    ),
    (
        "30 2 * * *", "Africa/Casablanca", {}, "2026-02-14T12:00+00:00",
        ["2026-02-15 02:30+01:00", "2026-02-16 02:30+00:00"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "zone", "policy", "after", "expected"), GOLDEN)
def test_gaps_and_folds_are_as_declared(text: str, zone: str, policy, after: str, expected: list[str]):
    assert shown(wall(text, zone, **policy), zone, after, len(expected)) == expected


def test_intervals_are_even_whatever_clocks_do():
    timing = Timing(Every(90 * 60 * SECOND_US, at_us("2026-10-25T00:00+00:00")))
    found = list(islice(instants(timing, at_us("2026-10-25T01:00+00:00")), 3))
    assert found == [at_us(f"2026-10-25T{hour}+00:00") for hour in ("01:30", "03:00", "04:30")]
    assert next_instant(timing, at_us("1999-01-01T00:00+00:00")) == at_us("2026-10-25T00:00+00:00")


def test_once_is_once():
    timing = Timing(Once(5 * SECOND_US))
    assert next_instant(timing, 5 * SECOND_US - 1) == 5 * SECOND_US
    assert next_instant(timing, 5 * SECOND_US) is None


def test_nothing_comes_before_the_start_or_from_the_end_on():
    day = 86_400 * SECOND_US
    rule = wall("0 0 * * *", "UTC").rule
    assert list(instants(Timing(rule, 3 * day, 6 * day), 0)) == [3 * day, 4 * day, 5 * day]
    assert list(instants(Timing(rule, 3 * day, 6 * day), 4 * day)) == [5 * day]


def test_a_name_of_no_zone_is_refused():
    for name in ("", "Europe/Atlantis", "../etc/passwd", "Europe", "zone.tab", "x" * 200, "a\x00b", 7, None):
        with pytest.raises(Invalid) as refusal:
            ZONES(name)
        assert refusal.value.field == "time_zone"


@given(st.integers(0, 10_000), st.integers(1, 5_000), st.integers(0, 100_000))
def test_the_next_instant_of_an_interval_is_the_first_one_after(anchor: int, every: int, after: int):
    found = next_instant(Timing(Every(every, anchor)), after)
    assert found is not None
    assert found > after
    assert (found - anchor) % every == 0
    assert found == anchor or found - every <= after


def clocks() -> dict[tuple[tuple[int, int], ...], str]:
    """Zones that set their clocks differently in these years: all changes, and one name for each set of them."""
    found: dict[tuple[tuple[int, int], ...], str] = {}
    begin, end = (round(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (FROM, UNTIL))
    for name in sorted(zoneinfo.available_timezones()):
        info = zoneinfo.ZoneInfo(name)
        changes, before = [], None
        # By the hour, in the plainest way: no other code is asked where clocks are set.
        for at in range(begin, end, 3600 * 24):
            offset = offset_of(info, at)
            if before is not None and offset != before:
                changes += [(each, offset_of(info, each)) for each in hours_of_change(info, at - 3600 * 24, at)]
            before = offset
        found.setdefault((*changes, (0, before or 0)), name)
    return found


def hours_of_change(info: zoneinfo.ZoneInfo, begin: int, end: int) -> Iterator[int]:
    for at in range(begin + 900, end + 1, 900):
        if offset_of(info, at) != offset_of(info, at - 900):
            yield at


def offset_of(info: zoneinfo.ZoneInfo, at: int) -> int:
    offset = datetime.fromtimestamp(at, info).utcoffset()
    return round((offset or timedelta()).total_seconds())


PROBES = ["*/10 * * * *", "15 * * * *", "*/15 0-3 * * *", "30 2 * * *", "0 0 * * *", "59 23 * * *", "5 1 * * SUN"]


def walked(timing: Timing, info: zoneinfo.ZoneInfo, begin: int, end: int) -> list[int]:
    """What comes in a stretch, found by looking at the clock minute by minute."""
    rule = timing.rule
    assert isinstance(rule, WallClock)
    found, seen, before = [], set(), offset_of(info, begin - 60)
    for at in range(begin - 86_400, end, 60):
        offset = offset_of(info, at)
        skipped = range(at + before, at + offset, 60) if offset > before and at > begin - 86_400 else ()
        due = any(named(rule.cron, local) for local in skipped) and rule.gap == "after"
        local = at + offset
        due = due or (named(rule.cron, local) and (rule.fold == "both" or local not in seen))
        seen.add(local)
        before = offset
        if due and at >= begin:
            found.append(at * SECOND_US)
    return found


def named(cron: Cron, local: int) -> bool:
    return following(cron, local, local + 1) is not None


def check_zone(name: str, changes: tuple[tuple[int, int], ...]) -> int:
    """Around each change, every probe under every policy comes as the clock says."""
    info = zoneinfo.ZoneInfo(name)
    checked = 0
    for change, _ in [each for each in changes if each[0]]:
        begin, end = change - 5 * 3600, change + 5 * 3600
        for text in PROBES:
            for gap, fold in (("after", "first"), ("skip", "both")):
                timing = wall(text, name, gap, fold)
                expected = walked(timing, info, begin, end)
                before_end = takewhile(
                    lambda each, end=end: each < end * SECOND_US, instants(timing, begin * SECOND_US - 1)
                )
                assert list(before_end) == expected, (name, text, gap, fold, change)
                checked += len(expected)
    return checked


def test_a_run_of_each_day_comes_on_each_day_in_every_zone():
    begin, end = at_us(f"{FROM}-01-01T00:00+00:00"), at_us(f"{UNTIL}-01-01T00:00+00:00")
    for name in sorted(zoneinfo.available_timezones())[::7]:
        info = zoneinfo.ZoneInfo(name)
        timing = wall("30 2 * * *", name)
        found = list(takewhile(lambda each: each < end, instants(timing, begin)))
        days = [datetime.fromtimestamp(each / SECOND_US, info).date() for each in found]
        assert all(later - earlier == timedelta(days=1) for earlier, later in pairwise(days)), name
        assert found == sorted(set(found))
        # Whoever begins anywhere goes on with the same.
        assert [next_instant(timing, each) for each in found[:-1:97]] == found[1::97]


def test_gaps_and_folds_of_some_zones_are_as_the_clock_shows_them():
    some = list(clocks().items())[::9]
    assert sum(check_zone(name, changes[:4]) for changes, name in some) > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_gaps_and_folds_of_every_zone_are_as_the_clock_shows_them_for_five_years():
    every = clocks()
    assert len(every) > 30
    assert sum(check_zone(name, changes) for changes, name in every.items()) > 10_000
