"""What is done at the instants of a schedule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.schedule import OVERLAPS, FireOutcome, SkipReason, jitter_us, overlapping, passed
from perdure.domain.timing import Every, Timing, instants

TEN = Timing(Every(10, 0))


def test_what_came_within_the_window_is_due_and_what_came_before_is_missed():
    found = passed(TEN, 10, 55, 30, paused=False, limit=100)
    assert found.due == [30, 40, 50]
    assert found.skipped == [(10, 20, 2, SkipReason.MISSED)]
    assert found.next_us == 60


def test_of_a_paused_schedule_all_is_skipped():
    assert passed(TEN, 10, 55, 30, paused=True, limit=100) == ([(10, 50, 5, SkipReason.PAUSED)], [], 60)


def test_no_more_than_the_limit_is_looked_at_and_the_rest_is_next():
    found = passed(TEN, 10, 1_000_000, 40, paused=False, limit=5)
    assert (found.skipped, found.due, found.next_us) == ([(10, 30, 3, SkipReason.MISSED)], [40, 50], 60)


def test_after_the_last_instant_nothing_is_next():
    assert passed(Timing(Every(10, 0), None, 25), 10, 100, 0, paused=False, limit=5) == ([], [10, 20], None)


@given(st.integers(0, 300), st.integers(0, 400), st.integers(0, 400), st.booleans(), st.integers(1, 20))
def test_every_instant_is_fired_skipped_or_left_and_never_two_of_these(
    first: int, until: int, missed_before: int, paused: bool, limit: int
):
    seen: list[int] = []
    next_us: int | None = next(instants(TEN, first - 1))
    while next_us is not None and next_us <= until:
        found = passed(TEN, next_us, until, missed_before, paused, limit)
        for stretch in found.skipped:
            seen += range(stretch.first_us, stretch.last_us + 1, 10)
        seen += found.due
        next_us = found.next_us
    assert seen == [each for each in range(0, until + 1, 10) if each >= first]


@pytest.mark.parametrize(
    ("policy", "open", "waiting", "outcome", "cancel"),
    [
        ("allow", True, False, FireOutcome.FIRED, False),
        ("skip", False, False, FireOutcome.FIRED, False),
        ("skip", True, False, FireOutcome.SKIPPED, False),
        ("queue_one", False, False, FireOutcome.FIRED, False),
        ("queue_one", True, False, FireOutcome.WAITING, False),
        ("queue_one", True, True, FireOutcome.SKIPPED, False),
        ("queue_one", False, True, FireOutcome.SKIPPED, False),
        ("cancel_running", False, False, FireOutcome.FIRED, False),
        ("cancel_running", True, False, FireOutcome.FIRED, True),
    ],
)
def test_overlap_is_as_declared(policy, open: bool, waiting: bool, outcome: FireOutcome, cancel: bool):
    assert policy in OVERLAPS
    assert overlapping(policy, open, waiting) == (outcome, cancel)


@given(st.integers(0, 10**16), st.integers(1, 10**9))
def test_jitter_is_within_its_bound_and_the_same_each_time(instant: int, bound: int):
    first = jitter_us("o", "nightly", instant, bound)
    assert 0 <= first <= bound
    assert first == jitter_us("o", "nightly", instant, bound)


def test_jitter_spreads_schedules_and_instants():
    found = {jitter_us("o", f"s{number}", 5, 10**9) for number in range(50)}
    found |= {jitter_us("o", "s", number, 10**9) for number in range(50)}
    assert len(found) == 100
    assert jitter_us("o", "s", 5, 0) == 0
