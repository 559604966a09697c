"""When a handler began and when it was told to stop, as its worker says afterwards and the store's clock bounds it."""

import pytest

from conformance.making import DONE, ORGANIZATION, World, digest_of, retry_in, us
from perdure.domain.attempt import Lease, Progress, Renewal, Report
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, TaskState
from perdure.store.ledger import Guard, SettleAnswer, Settling
from perdure.store.views import AttemptView


async def settle(
    world: World, lease: Lease, settlement: Settlement, ran: float | None, told: float | None = None
) -> None:
    settling = Settling(
        lease.hold,
        Guard.HOLDER,
        settlement,
        digest_of(settlement),
        None if ran is None else us(ran),
        None if told is None else us(told),
    )
    (answer,) = await world.ledger.settle([settling])
    assert answer.answer is SettleAnswer.APPLIED


async def attempt_of(world: World, lease: Lease) -> AttemptView:
    *_, attempt = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    return attempt


async def types(world: World, lease: Lease) -> list[str]:
    return [each.type for each in await world.views.events(ORGANIZATION, lease.hold.task_id)]


@pytest.mark.parametrize("settlement", [DONE, retry_in(10), Settlement.handed_back()], ids=lambda each: str(each.state))
async def test_a_handler_that_ended_before_any_renewal_has_its_start_in_the_history(
    world: World, settlement: Settlement
) -> None:
    lease = await world.lease()
    leased_us = await world.now_us()
    world.advance(5)
    await settle(world, lease, settlement, ran=3)
    attempt = await attempt_of(world, lease)
    assert attempt.started_us == leased_us + us(2)
    assert (await types(world, lease))[2:4] == ["leased", "started"]


async def test_a_handler_that_did_not_begin_has_no_start(world: World) -> None:
    lease = await world.lease()
    world.advance(5)
    await settle(world, lease, Settlement.handed_back(), ran=None)
    assert (await attempt_of(world, lease)).started_us is None
    assert "started" not in await types(world, lease)


@pytest.mark.parametrize(("ran", "after"), [(3, 2), (100, 0), (-100, 5)])
async def test_no_start_lies_outside_its_attempt(world: World, ran: float, after: float) -> None:
    settled, renewed, reported = [await world.lease() for _ in range(3)]
    leased_us = await world.now_us()
    world.advance(5)
    await settle(world, settled, DONE, ran)
    await world.ledger.renew([Renewal(renewed.hold, True, ran_us=us(ran))])
    await world.ledger.report([Report(reported.hold, progress=Progress(1), ran_us=us(ran))])
    for lease in (settled, renewed, reported):
        assert (await attempt_of(world, lease)).started_us == leased_us + us(after)


async def test_a_start_that_was_told_once_stays(world: World) -> None:
    lease = await world.lease()
    leased_us = await world.now_us()
    world.advance(5)
    await world.ledger.renew([Renewal(lease.hold, True, ran_us=us(1))])
    world.advance(5)
    await world.ledger.renew([Renewal(lease.hold, True, ran_us=us(9))])
    await world.ledger.report([Report(lease.hold, progress=Progress(1), ran_us=us(9))])
    await settle(world, lease, DONE, ran=9)
    assert (await attempt_of(world, lease)).started_us == leased_us + us(4)


async def test_a_prefetched_attempts_renewal_starts_nothing(world: World) -> None:
    lease = await world.lease()
    world.advance(5)
    await world.ledger.renew([Renewal(lease.hold, False, ran_us=us(3))])
    attempt = await attempt_of(world, lease)
    assert (attempt.state, attempt.started_us) == (AttemptState.LEASED, None)


async def cancelling(world: World) -> tuple[Lease, int]:
    lease = await world.lease()
    world.advance(5)
    await world.cancel(lease.hold.task_id)
    return lease, await world.now_us()


async def ladder(world: World, lease: Lease) -> dict[str, tuple[int, object]]:
    events = await world.views.events(ORGANIZATION, lease.hold.task_id)
    return {each.type: (each.at_us, each.data.get("by")) for each in events if each.type.startswith("cancel_")}


async def test_the_ladder_of_a_cancel_that_was_answered_before_any_renewal(world: World) -> None:
    lease, asked_us = await cancelling(world)
    world.advance(3)
    await settle(world, lease, Settlement.acknowledged(), ran=7, told=2)
    assert await ladder(world, lease) == {
        "cancel_requested": (asked_us, None),
        "cancel_delivered": (asked_us + us(1), None),
        "cancel_stopped": (asked_us + us(3), "holder"),
    }


@pytest.mark.parametrize(("told", "after"), [(2, 1), (100, 0), (-100, 3)])
async def test_no_delivery_lies_before_its_request_or_in_the_future(world: World, told: float, after: float) -> None:
    lease, asked_us = await cancelling(world)
    world.advance(3)
    await world.ledger.renew([Renewal(lease.hold, True, True, us(8), us(told))])
    world.advance(3)
    await settle(world, lease, Settlement.acknowledged(), ran=None, told=6)
    other, asked_later_us = await cancelling(world)
    world.advance(3)
    await settle(world, other, Settlement.acknowledged(), ran=None, told=told)
    assert (await ladder(world, lease))["cancel_delivered"] == (asked_us + us(after), None)
    assert (await ladder(world, other))["cancel_delivered"] == (asked_later_us + us(after), None)


async def test_a_handler_that_had_to_be_stopped_is_told_apart(world: World) -> None:
    lease, asked_us = await cancelling(world)
    world.advance(3)
    await settle(world, lease, Settlement.acknowledged(killed=True), ran=7, told=2)
    assert (await ladder(world, lease))["cancel_stopped"] == (asked_us + us(3), "killed")
    view = await world.look(lease.hold.task_id)
    assert view.state is TaskState.CANCELLED
    assert view.last_error is not None
    assert view.last_error.type == "NotStopped"


async def test_what_a_failing_handler_of_a_cancelled_task_says_is_not_kept(world: World) -> None:
    lease, asked_us = await cancelling(world)
    await settle(world, lease, retry_in(1), ran=5, told=0)
    view = await world.look(lease.hold.task_id)
    assert (view.state, view.last_error) == (TaskState.CANCELLED, None)
    assert (await ladder(world, lease))["cancel_stopped"] == (asked_us, "holder")


async def test_a_start_that_is_told_twice_in_one_flush_counts_once(world: World) -> None:
    lease, _ = await world.lease(), await world.lease()
    told = Renewal(lease.hold, True, False, 0, 0)
    assert None not in await world.ledger.renew([told, told])
    counts = {row.state: row.tasks for row in (await world.views.overview(ORGANIZATION)).counts if row.tasks}
    assert counts == {TaskState.LEASED: 1, TaskState.RUNNING: 1}
