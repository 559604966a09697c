"""Every event in every state: the legal ones move the task as the table says, the others change nothing at all."""

import itertools

import pytest

from conformance.making import ORGANIZATION, World
from conformance.states import DUE_IN, HOLDERS_SETTLES, RECIPES, TRIES, Subject, bring, make_ready
from perdure.domain.states import ENDED, HELD, AttemptState, TaskState
from perdure.domain.transitions import TABLE, Event, targets

PAIRS = list(itertools.product((None, *TaskState), TRIES))


def allowed(state: TaskState | None, event: Event) -> frozenset[TaskState]:
    """Where the event may lead. Whatever was decided before a cancel was known ends the attempt cancelled."""
    if state is TaskState.CANCELLING and event in HOLDERS_SETTLES | {Event.REVOKE}:
        return frozenset({TaskState.CANCELLED})
    return targets(state, event)


HARMLESS = {
    (TaskState.PENDING, Event.POSTPONE): "it is due at another time",
    (TaskState.RUNNING, Event.START): "its lease is renewed",
    (TaskState.CANCELLING, Event.START): "its lease is renewed, and its holder told to stop",
}
"""Not moves of the table, and not refused either: the state stays."""

LEGAL = [pair for pair in PAIRS if allowed(*pair) and pair not in HARMLESS]
ILLEGAL = [pair for pair in PAIRS if not allowed(*pair) and pair not in HARMLESS]


def test_the_recipes_and_the_events_are_all_there() -> None:
    assert set(RECIPES) == {None, *TaskState}
    assert set(TRIES) == set(Event) - {Event.REVIVE}


@pytest.mark.parametrize("state", [state for state in RECIPES if state is not None])
async def test_a_recipe_brings_a_task_into_its_state(world: World, state: TaskState) -> None:
    subject = await RECIPES[state](world)
    assert await world.state(subject.id) is state


@pytest.mark.parametrize(("state", "event"), LEGAL)
async def test_a_legal_event_moves_the_task_as_the_table_says(
    world: World, state: TaskState | None, event: Event
) -> None:
    subject = await bring(world, state, event)
    await make_ready(world, event, state)
    if event is Event.CANCEL_DEADLINE or (state is TaskState.CANCELLING and event is Event.LOSE):
        (answer,) = await world.sweep()
        assert answer.state is TaskState.CANCELLED
    else:
        assert await TRIES[event](world, subject)
    await check_moved(world, subject, state, event)


async def check_moved(world: World, subject: Subject, state: TaskState | None, event: Event) -> None:
    now = await world.now_us()
    task = await world.look(subject.id)
    assert task.state in allowed(state, event)
    assert (task.finished_us == now) == (task.state in ENDED)
    assert (task.reason is not None) == (task.state in ENDED)
    assert (task.lease_expires_us is not None) == (task.state in HELD)
    attempts = await world.views.attempts(ORGANIZATION, subject.id)
    if state in HELD and task.state not in HELD:
        (ended,) = attempts
        assert ended.id == subject.hold.attempt_id
        assert ended.ended_us == now
        assert ended.state in attempt_states(state, event)
    if event is Event.CLAIM:
        (live,) = attempts
        assert live.state is AttemptState.LEASED
        assert live.fence >= now
        assert task.worker == "w"
    if event is Event.START:
        assert attempts[-1].state is AttemptState.RUNNING
        assert task.started_us == now


def attempt_states(state: TaskState | None, event: Event) -> set[AttemptState]:
    if state is TaskState.CANCELLING:
        return {AttemptState.CANCELLED}
    return {each for row in TABLE if row.event is event and state in row.sources for each in row.attempt}


@pytest.mark.parametrize(("state", "event"), ILLEGAL)
async def test_an_illegal_event_changes_not_one_row(world: World, state: TaskState | None, event: Event) -> None:
    subject = await bring(world, state, event)
    await make_ready(world, event, state)
    with world.unchanged(late_results=True):
        assert not await TRIES[event](world, subject)


async def test_a_pending_task_can_be_postponed_and_stays_pending(world: World) -> None:
    subject = await bring(world, TaskState.PENDING, Event.POSTPONE)
    assert await TRIES[Event.POSTPONE](world, subject)
    assert await world.state(subject.id) is TaskState.PENDING
    world.advance(DUE_IN)
    assert (await world.ledger.promote(10)).moved == 0


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.CANCELLING])
async def test_a_second_start_is_a_renewal(world: World, state: TaskState) -> None:
    subject = await bring(world, state, Event.START)
    begun = (await world.look(subject.id)).started_us
    world.advance(5)
    assert await TRIES[Event.START](world, subject)
    task = await world.look(subject.id)
    assert (task.state, task.started_us) == (state, begun)


async def test_a_family_that_is_redriven_revives_only_what_was_cancelled_for_it(world: World) -> None:
    family = await world.submit_job(
        {"top": [], "next": ["top"], "after": ["next"], "whatever": ["top"], "by_hand": []},
        tasks={"whatever": {"trigger": "all_done"}},
    )
    await world.cancel(family["by_hand"])
    await fail_top(world, family["top"])
    await world.cascade()
    await world.finish(await world.claim_one())
    assert await world.states(family) == {
        "top": TaskState.DEAD_LETTERED,
        "next": TaskState.CANCELLED,
        "after": TaskState.CANCELLED,
        "whatever": TaskState.SUCCEEDED,
        "by_hand": TaskState.CANCELLED,
    }
    assert await world.redrive(family["top"]) is TaskState.QUEUED
    await world.cascade()
    assert await world.states(family) == {
        "top": TaskState.QUEUED,
        "next": TaskState.PENDING,
        "after": TaskState.PENDING,
        "whatever": TaskState.SUCCEEDED,
        "by_hand": TaskState.CANCELLED,
    }


async def fail_top(world: World, task_id: str) -> None:
    from conformance.making import FAILED

    (lease,) = [each for each in await world.claim(5) if each.hold.task_id == task_id]
    await world.finish(lease, settlement=FAILED)
