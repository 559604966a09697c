"""The lifecycle as data: complete, closed, and refused outside itself."""

import itertools

import pytest

from perdure.domain.states import ATTEMPT_ENDED, ENDED, HELD, UNFINISHED, WAITING, AttemptState, TaskState
from perdure.domain.transitions import TABLE, Event, check, targets
from perdure.errors import IllegalTransition

SOURCES: tuple[TaskState | None, ...] = (None, *TaskState)
PAIRS = list(itertools.product(SOURCES, Event))


def test_no_state_has_two_rows_for_one_event() -> None:
    pairs = [(source, row.event) for row in TABLE for source in row.sources]
    assert len(pairs) == len(set(pairs))


def test_every_event_has_a_row() -> None:
    assert {row.event for row in TABLE} == set(Event)


def test_every_state_is_reached_from_a_submit() -> None:
    reached: set[TaskState | None] = {None}
    while True:
        step = {target for row in TABLE if reached & set(row.sources) for target in row.targets}
        if step <= reached:
            break
        reached |= step
    assert reached == {None, *TaskState}


def test_every_unfinished_state_can_come_to_an_end() -> None:
    able: set[TaskState | None] = set(ENDED)
    while True:
        step = {source for row in TABLE if able & set(row.targets) for source in row.sources}
        if step <= able:
            break
        able |= step
    assert able >= UNFINISHED


def test_only_a_redrive_or_a_revival_leaves_an_end() -> None:
    leaving = {row.event for row in TABLE if ENDED & set(row.sources)}
    assert leaving == {Event.REDRIVE, Event.REVIVE}


def test_nothing_leaves_a_success() -> None:
    for event in Event:
        assert not targets(TaskState.SUCCEEDED, event)
        assert not targets(TaskState.PARTIALLY_SUCCEEDED, event)


def test_only_a_claim_leads_to_a_lease() -> None:
    assert {row.event for row in TABLE if TaskState.LEASED in row.targets} == {Event.CLAIM}


def test_waiting_held_and_ended_divide_the_states() -> None:
    assert set(TaskState) == WAITING | HELD | ENDED
    assert not WAITING & HELD
    assert not UNFINISHED & ENDED


def test_a_row_that_leaves_a_held_state_for_good_ends_its_attempt() -> None:
    for row in TABLE:
        if set(row.sources) <= HELD and not set(row.targets) & HELD:
            assert row.attempt, row
            assert set(row.attempt) <= ATTEMPT_ENDED, row


def test_a_row_between_waiting_states_has_no_attempt() -> None:
    for row in TABLE:
        if None not in row.sources and set(row.sources) <= WAITING and not set(row.targets) & HELD:
            assert row.attempt == (), row


@pytest.mark.parametrize(("source", "event"), PAIRS)
def test_a_move_is_taken_exactly_when_the_table_has_it(source: TaskState | None, event: Event) -> None:
    allowed = targets(source, event)
    for target in TaskState:
        if target in allowed:
            check(source, event, target)
        else:
            with pytest.raises(IllegalTransition) as caught:
                check(source, event, target)
            assert caught.value.fields["event"] == event.value
            assert caught.value.fields["target"] == target.value


def test_cancelling_is_left_only_towards_an_end() -> None:
    for row in TABLE:
        if TaskState.CANCELLING in row.sources:
            assert set(row.targets) <= ENDED
            assert set(row.attempt) <= {AttemptState.CANCELLED, AttemptState.SUCCEEDED}
