"""What a kind may say about uniqueness, and what comes of two tasks that meet."""

from typing import Any

import pytest

from perdure.domain.states import ENDED, UNFINISHED, WAITING, TaskState
from perdure.domain.unique import OnConflict, SubmitOutcome, Unique
from perdure.errors import Invalid

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"by": ""}, "by"),
        ({"by": "a\0"}, "by"),
        ({"by": "\ud800"}, "by"),
        ({"by": ("a", "x" * 129)}, "by"),
        ({"by": 7}, "by"),
        ({"by": ("a", "a")}, "by"),
        ({"by": tuple("abcdefghi")}, "by"),
        ({"on_conflict": "merge"}, "on_conflict"),
        ({"states": "queued"}, "states"),
        ({"states": ("gone",)}, "states"),
        ({"within": 0}, "within"),
        ({"within": True}, "within"),
        ({"within": 366 * 24 * 3600}, "within"),
        ({"wait": 5}, "wait"),
        ({"on_conflict": "debounce"}, "wait"),
        ({"on_conflict": "debounce", "wait": 0}, "wait"),
        ({"max_wait": 5}, "max_wait"),
        ({"on_conflict": "debounce", "wait": 5, "within": 5}, "within"),
        ({"on_conflict": "throttle"}, "within"),
        ({"on_conflict": "throttle", "within": 5, "states": ("running",)}, "states"),
        ({"on_conflict": "debounce", "wait": 5, "states": ("running",)}, "states"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(said: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        Unique(**said)
    assert refused.value.field == field


def test_one_field_may_be_said_without_a_list() -> None:
    assert Unique(by="customer") == Unique(by=("customer",))


def test_a_holder_keeps_its_key_while_it_waits_and_in_the_states_that_are_said() -> None:
    assert {*Unique().key("k").states} == UNFINISHED
    assert {*Unique(states=(TaskState.SUCCEEDED,)).key("k").states} == WAITING | {TaskState.SUCCEEDED}
    assert {*Unique(on_conflict="throttle", within=5).key("k").states} == UNFINISHED | ENDED
    assert {*Unique(on_conflict="debounce", wait=5).key("k").states} == WAITING


@pytest.mark.parametrize("choice", list(OnConflict))
def test_nobody_is_met_where_there_is_no_holder(choice: OnConflict) -> None:
    given: Any = {"wait": 5} if choice == "debounce" else {"within": 5}
    key = Unique(on_conflict=choice.value, **given).key("k")
    assert key.meet(None, 0, True) is SubmitOutcome.CREATED


@pytest.mark.parametrize(
    ("choice", "given", "waiting", "running"),
    [
        ("reject", {}, None, None),
        ("return_existing", {}, SubmitOutcome.EXISTING, SubmitOutcome.EXISTING),
        ("throttle", {"within": 5}, SubmitOutcome.EXISTING, SubmitOutcome.EXISTING),
        ("replace", {}, SubmitOutcome.REPLACED, None),
        ("debounce", {"wait": 5}, SubmitOutcome.DEBOUNCED, SubmitOutcome.CREATED),
    ],
)
def test_each_choice_for_a_holder_that_waits_and_one_that_runs(
    choice: Any, given: Any, waiting: SubmitOutcome | None, running: SubmitOutcome | None
) -> None:
    key = Unique(on_conflict=choice, **given).key("k")
    assert key.meet(TaskState.QUEUED, 0, True) is waiting
    assert key.meet(TaskState.RUNNING, 0, True) is running


def test_a_task_of_a_job_is_not_moved_by_others() -> None:
    assert Unique(on_conflict="replace").key("k").meet(TaskState.QUEUED, 0, False) is None
    assert Unique(on_conflict="debounce", wait=5).key("k").meet(TaskState.QUEUED, 0, False) is None


def test_within_ends_exactly_when_its_seconds_have_passed() -> None:
    key = Unique(within=5).key("k")
    assert key.meet(TaskState.RUNNING, 5 * SECOND - 1, True) is None
    assert key.meet(TaskState.RUNNING, 5 * SECOND, True) is SubmitOutcome.CREATED
    assert key.until_us(7) == 5 * SECOND + 7
    assert Unique().key("k").until_us(7) is None


def test_a_debounce_is_due_after_its_wait_but_no_later_than_its_bound_from_the_first_submit() -> None:
    key = Unique(on_conflict="debounce", wait=5, max_wait=12).key("k")
    assert key.due_us(0, 0) == 5 * SECOND
    assert key.due_us(10 * SECOND, 0) == 12 * SECOND
    assert key.due_us(20 * SECOND, 0) == 20 * SECOND
    assert Unique(on_conflict="debounce", wait=5).key("k").due_us(20 * SECOND, 0) == 25 * SECOND
