"""An attempt that does not hold its task changes nothing, whatever it sends; the same write again applies once."""

from collections.abc import Awaitable, Callable

import pytest

from conformance.making import (
    DONE,
    FAILED,
    HOUR,
    ORGANIZATION,
    PARTLY_DONE,
    RESULT,
    World,
    part,
    retry_in,
    settling,
    us,
)
from perdure.domain.attempt import Hold, Progress, Renewal, Report
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, TaskState
from perdure.domain.task import Body
from perdure.errors import Conflict, LeaseLost
from perdure.store.ledger import Reported, SettleAnswer, Settled

LOST = Settled(SettleAnswer.LEASE_LOST, None)

Write = Callable[[World, Hold], Awaitable[bool]]
"""Sends one write; whether the store says that the attempt may not write."""


async def renew(world: World, hold: Hold) -> bool:
    return await world.renew(hold) is None


async def start(world: World, hold: Hold) -> bool:
    return await world.renew(hold, started=True) is None


async def progress(world: World, hold: Hold) -> bool:
    return isinstance(await world.report(hold, progress=Progress(1, 2)), LeaseLost)


async def phase(world: World, hold: Hold) -> bool:
    return isinstance(await world.report(hold, phase="executing"), LeaseLost)


async def piece(world: World, hold: Hold) -> bool:
    return isinstance(await world.report(hold, part=part(1)), LeaseLost)


async def checkpoint(world: World, hold: Hold) -> bool:
    return isinstance(await world.report(hold, checkpoint='{"at":1}'), LeaseLost)


def settle_with(settlement: Settlement) -> Write:
    async def write(world: World, hold: Hold) -> bool:
        return await world.settle(hold, settlement) == LOST

    return write


async def inputs(world: World, hold: Hold) -> bool:
    with pytest.raises(LeaseLost):
        await world.ledger.inputs(hold)
    return True


WRITES: dict[str, Write] = {
    "renewal": renew,
    "start": start,
    "progress": progress,
    "phase": phase,
    "part": piece,
    "checkpoint": checkpoint,
    "result": settle_with(DONE),
    "partial result": settle_with(PARTLY_DONE),
    "failure": settle_with(FAILED),
    "retry": settle_with(retry_in(10)),
    "snooze": settle_with(Settlement.snoozed(us(5))),
    "hand back": settle_with(Settlement.handed_back()),
    "giving up": settle_with(Settlement.gave_up("why")),
    "acknowledgement": settle_with(Settlement.acknowledged()),
    "inputs": inputs,
}


async def wrong_token(world: World) -> Hold:
    """The right attempt, another's token."""
    lease = await world.lease()
    return lease.hold._replace(token=world.ids.token())


async def empty_token(world: World) -> Hold:
    """No token, as the duties send it."""
    lease = await world.lease()
    return lease.hold._replace(token="")


async def wrong_attempt(world: World) -> Hold:
    """The right token, another attempt."""
    lease = await world.lease()
    return lease.hold._replace(attempt_id=world.ids.new())


async def wrong_task(world: World) -> Hold:
    """An attempt of another task."""
    await world.lease()
    other = await world.lease()
    first = await world.submit()
    return other.hold._replace(task_id=first)


async def wrong_organization(world: World) -> Hold:
    """Everything right but the organization."""
    lease = await world.lease()
    return lease.hold._replace(organization="another")


async def older_attempt(world: World) -> Hold:
    """Lost its lease; a second attempt is under way."""
    lease = await world.lease()
    world.advance(60)
    await world.sweep()
    again = await world.claim_one()
    assert again.hold.task_id == lease.hold.task_id
    assert again.fence > lease.fence
    await world.start(again)
    return lease.hold


async def lost_and_waiting(world: World) -> Hold:
    """Lost its lease; the task waits for another worker."""
    lease = await world.lease()
    world.advance(60)
    await world.sweep()
    return lease.hold


async def run_out(world: World) -> Hold:
    """Its lease ran out this very microsecond and nobody has noticed."""
    lease = await world.lease()
    world.advance(60)
    return lease.hold


async def ended_by_itself(world: World) -> Hold:
    """It ended the task with another settlement."""
    lease = await world.lease()
    await world.finish(lease, settlement=Settlement.succeeded(Body(b'"the first"')))
    return lease.hold


async def handed_back(world: World) -> Hold:
    """It handed the task back and wakes up again."""
    lease = await world.lease()
    (answer,) = await world.ledger.settle([settling(lease, Settlement.handed_back(), digest="earlier")])
    assert answer.answer is SettleAnswer.APPLIED
    return lease.hold


async def redriven(world: World) -> Hold:
    """An attempt of an earlier generation."""
    lease = await world.lease()
    (answer,) = await world.ledger.settle([settling(lease, FAILED, digest="earlier")])
    assert answer.answer is SettleAnswer.APPLIED
    assert await world.redrive(lease.hold.task_id) is TaskState.QUEUED
    await world.claim_one()
    return lease.hold


STALE = {
    each.__name__: each
    for each in (
        wrong_token,
        empty_token,
        wrong_attempt,
        wrong_task,
        wrong_organization,
        older_attempt,
        lost_and_waiting,
        run_out,
        ended_by_itself,
        handed_back,
        redriven,
    )
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("stale", STALE)
async def test_a_stale_attempt_is_told_so_and_changes_nothing(world: World, stale: str, write: str) -> None:
    hold = await STALE[stale](world)
    with world.unchanged(late_results=True):
        assert await WRITES[write](world, hold)
        assert not await world.ledger.receipt_known(hold)


@pytest.mark.parametrize("stale", sorted(set(STALE) - {"wrong_token", "empty_token", "run_out"}))
async def test_only_the_live_attempt_of_a_task_has_facts(world: World, stale: str) -> None:
    hold = await STALE[stale](world)
    assert await world.ledger.facts([hold]) == [None]


@pytest.mark.parametrize("write", ["result", "failure", "part", "progress"])
async def test_a_stale_write_leaves_its_neighbours_in_the_call_alone(world: World, write: str) -> None:
    stale = await older_attempt(world)
    live = [await world.lease() for _ in range(3)]
    holds = [live[0].hold, stale, live[1].hold, live[2].hold]
    if write in ("result", "failure"):
        settlement = DONE if write == "result" else FAILED
        answers = await world.ledger.settle([settling(hold, settlement) for hold in holds])
        assert [each.answer for each in answers] == [
            SettleAnswer.APPLIED,
            SettleAnswer.LEASE_LOST,
            SettleAnswer.APPLIED,
            SettleAnswer.APPLIED,
        ]
    else:
        given = {"part": part(1)} if write == "part" else {"progress": Progress(1)}
        told = await world.ledger.report([Report(hold, **given) for hold in holds])  # type: ignore[arg-type]
        assert [isinstance(each, LeaseLost) for each in told] == [False, True, False, False]


async def test_many_late_results_leave_a_bounded_note(world: World) -> None:
    stale = await older_attempt(world)
    for n in range(50):
        await world.settle(stale, Settlement.succeeded(Body(b"%d" % n)))
    events = await world.views.events(ORGANIZATION, stale.task_id)
    assert 1 <= len([each for each in events if each.type == "late_result"]) <= 10


# The same again


@pytest.mark.parametrize(
    "settlement",
    [
        DONE,
        PARTLY_DONE,
        FAILED,
        retry_in(20),
        Settlement.snoozed(us(20)),
        Settlement.handed_back(),
        Settlement.gave_up("why"),
    ],
    ids=lambda each: str(each.event),
)
async def test_a_repeated_settle_answers_twice_and_applies_once(world: World, settlement: Settlement) -> None:
    lease = await world.lease()
    first = await world.settle(lease, settlement)
    assert first == Settled(SettleAnswer.APPLIED, settlement.state)
    with world.unchanged():
        assert await world.settle(lease, settlement) == Settled(SettleAnswer.REPLAYED, settlement.state)
    world.advance(HOUR)
    with world.unchanged():
        assert await world.settle(lease, settlement) == Settled(SettleAnswer.REPLAYED, settlement.state)


async def test_a_repeat_is_answered_as_recorded_even_when_the_task_has_moved_on(world: World) -> None:
    lease = await world.lease()
    await world.settle(lease, Settlement.handed_back())
    again = await world.claim_one()
    await world.finish(again)
    with world.unchanged():
        answer = await world.settle(lease, Settlement.handed_back())
    assert answer == Settled(SettleAnswer.REPLAYED, TaskState.QUEUED)


async def test_a_settle_of_a_cancelled_attempt_is_repeated_with_its_own_digest(world: World) -> None:
    lease = await world.lease()
    await world.cancel(lease.hold.task_id)
    assert await world.settle(lease, DONE) == Settled(SettleAnswer.APPLIED, TaskState.CANCELLED)
    with world.unchanged():
        assert await world.settle(lease, DONE) == Settled(SettleAnswer.REPLAYED, TaskState.CANCELLED)


@pytest.mark.parametrize("other", ["token", "digest"])
async def test_a_repeat_with_another_token_or_digest_is_stale(world: World, other: str) -> None:
    lease = await world.lease()
    await world.finish(lease)
    hold = lease.hold._replace(token=world.ids.token()) if other == "token" else lease.hold
    with world.unchanged(late_results=True):
        answer = await world.settle(hold, DONE, digest="another" if other == "digest" else None)
    if other == "digest":
        assert answer == LOST
    else:
        assert answer.answer in (SettleAnswer.LEASE_LOST, SettleAnswer.REPLAYED)


async def test_the_same_settle_twice_in_one_call_applies_once(world: World) -> None:
    lease = await world.lease()
    answers = await world.ledger.settle([settling(lease, DONE), settling(lease, DONE)])
    assert answers[0] == Settled(SettleAnswer.APPLIED, TaskState.SUCCEEDED)
    assert answers[1] == Settled(SettleAnswer.REPLAYED, TaskState.SUCCEEDED)
    assert len(await world.views.attempts(ORGANIZATION, lease.hold.task_id)) == 1


async def test_two_different_settles_of_one_attempt_in_one_call_take_the_first(world: World) -> None:
    lease = await world.lease()
    answers = await world.ledger.settle([settling(lease, FAILED), settling(lease, DONE)])
    assert answers == [Settled(SettleAnswer.APPLIED, TaskState.DEAD_LETTERED), LOST]
    assert (await world.look(lease.hold.task_id)).result is None


async def test_a_repeated_submit_of_the_same_id_answers_the_same_task(world: World) -> None:
    task = world.task()
    (first,) = await world.submit_all([task])
    with world.unchanged():
        (again,) = await world.submit_all([task])
    assert not first.replayed  # type: ignore[union-attr]
    assert again.id == task.id  # type: ignore[union-attr]
    assert again.replayed  # type: ignore[union-attr]


async def test_a_repeated_job_of_the_same_id_answers_the_same_job(world: World) -> None:
    job = world.job({"a": [], "b": ["a"]})
    (first,) = await world.ledger.submit_jobs([job])
    with world.unchanged():
        (again,) = await world.ledger.submit_jobs([job])
    assert again == first._replace(replayed=True)  # type: ignore[union-attr]


async def test_a_repeated_cancel_keeps_the_first_request(world: World) -> None:
    for task_id in [await world.submit(delay=HOUR), (await world.lease()).hold.task_id]:
        await world.cancel(task_id, actor="first", text="first")
        world.advance(1)
        with world.unchanged():
            again = await world.cancel(task_id, actor="second", text="second")
        assert again.answer.value == "already"
        request = (await world.look(task_id)).cancel
        assert request is not None
        assert (request.actor, request.text) == ("first", "first")


async def test_a_repeated_part_is_acknowledged_and_stored_once(world: World) -> None:
    lease = await world.lease()
    assert await world.report(lease, part=part(1, key="a")) == Reported(False, None)
    before = await world.views.parts(ORGANIZATION, lease.hold.task_id)
    assert await world.report(lease, part=part(1, key="a")) == Reported(True, None)
    assert await world.views.parts(ORGANIZATION, lease.hold.task_id) == before


async def test_the_same_part_with_other_content_is_a_conflict(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.report(lease, part=part(1, key="a"))
    with world.unchanged():
        assert isinstance(await world.report(lease, part=part(1, b'"other"', key="a")), Conflict)


async def test_a_renewal_sent_twice_is_answered_twice(world: World) -> None:
    lease = await world.lease()
    world.advance(5)
    answers = await world.ledger.renew([Renewal(lease.hold, True), Renewal(lease.hold, True)])
    assert [each.lease_us for each in answers if each] == [us(60), us(60)]
    assert (await world.look(lease.hold.task_id)).state is TaskState.RUNNING


async def test_a_result_that_succeeded_is_never_overwritten(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease)
    for settlement in (Settlement.succeeded(Body(b'"forged"')), FAILED, PARTLY_DONE, retry_in(1)):
        assert await world.settle(lease, settlement) == LOST
    world.advance(61)
    await world.sweep()
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.result) == (TaskState.SUCCEEDED, RESULT)
    attempts = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert [each.state for each in attempts] == [AttemptState.SUCCEEDED]
