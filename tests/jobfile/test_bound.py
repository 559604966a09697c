"""The least time that a DAG can take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.job import critical_path
from perdure.jobfile.bound import lower_bound


def test_a_chain_takes_as_long_as_its_tasks() -> None:
    assert lower_bound({"a": [], "b": ["a"]}, {"a": 1.0, "b": 2.0}, slots=8) == 3


def test_many_tasks_on_few_slots_take_their_work_over_the_slots() -> None:
    names = [str(number) for number in range(10)]
    assert lower_bound({name: [] for name in names}, dict.fromkeys(names, 1.0), slots=4) == 2.5


def test_of_more_tasks_than_slots_two_follow_one_another() -> None:
    wide = {"w0": 4.0, "w1": 5.0, "w2": 5.0, "w3": 6.0, "w4": 1.0}
    parents = {"first": [], **{name: ["first"] for name in wide}, "last": list(wide)}
    assert lower_bound(parents, {"first": 1.0, **wide, "last": 1.0}, slots=3) == 11
    assert lower_bound({name: [] for name in wide}, dict.fromkeys(wide, 2.0), slots=4) == 4


def test_a_wide_level_between_two_long_tasks_is_seen() -> None:
    wide = [f"w{number}" for number in range(100)]
    parents = {"first": [], **{name: ["first"] for name in wide}, "last": wide}
    seconds = {"first": 10.0, **dict.fromkeys(wide, 1.0), "last": 10.0}
    assert critical_path(parents, seconds)[0] == 21
    assert lower_bound(parents, seconds, slots=10) == 30


@given(st.lists(st.tuples(st.floats(0, 10), st.sets(st.integers(0, 11))), min_size=1, max_size=12), st.integers(1, 4))
def test_no_schedule_beats_the_bound(drawn: list[tuple[float, set[int]]], slots: int) -> None:
    parents = {str(n): [str(above) for above in sorted(chosen) if above < n] for n, (_, chosen) in enumerate(drawn)}
    seconds = {str(n): weight for n, (weight, _) in enumerate(drawn)}
    bound = lower_bound(parents, seconds, slots)
    assert bound >= critical_path(parents, seconds)[0]
    assert bound >= sum(seconds.values()) / slots - 1e-9
    assert greedy(parents, seconds, slots) >= bound - 1e-9


def greedy(parents: dict[str, list[str]], seconds: dict[str, float], slots: int) -> float:
    """The makespan of running what is ready, as soon as a slot is free."""
    ends: dict[str, float] = {}
    free = [0.0] * slots
    left = dict(parents)
    while left:
        name = min(
            (name for name in left if all(parent in ends for parent in parents[name])),
            key=lambda name: max((ends[parent] for parent in parents[name]), default=0.0),
        )
        free.sort()
        begun = max([free[0], *(ends[parent] for parent in parents[name])])
        ends[name] = free[0] = begun + seconds[name]
        del left[name]
    return max(ends.values())


@pytest.mark.parametrize("slots", [1, 3])
def test_nothing_takes_no_time(slots: int) -> None:
    assert lower_bound({"a": []}, {"a": 0.0}, slots) == 0
