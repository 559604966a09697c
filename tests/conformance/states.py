"""How to bring a task into each state, and how to try each event on it."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from conformance.making import (
    DONE,
    FAILED,
    FAILED_UNKEPT,
    HOUR,
    ORGANIZATION,
    PARTLY_DONE,
    World,
    retry_in,
    us,
)
from perdure.domain.attempt import Hold
from perdure.domain.settlement import Charge, Settlement
from perdure.domain.states import TaskState
from perdure.domain.task import Task
from perdure.domain.transitions import Event
from perdure.errors import IllegalTransition, PerdureError
from perdure.store.ledger import CancelAnswer, Guard, SettleAnswer, Submitted, WorkerOrder


class Subject(NamedTuple):
    """A task in some state, and the attempt that holds it or held it last (or never did)."""

    task: Task
    hold: Hold

    @property
    def id(self) -> str:
        """The task's id."""
        return self.task.id


DUE_IN = 10
"""Seconds until what waits is due: less than a lease."""

Recipe = Callable[..., Awaitable[Subject]]


async def _submitted(world: World, **given: Any) -> Subject:
    task = world.task(**given)
    (answer,) = await world.submit_all([task])
    assert isinstance(answer, Submitted)
    return Subject(task, Hold(ORGANIZATION, task.id, world.ids.new(), world.ids.token()))


async def nothing(world: World, **given: Any) -> Subject:
    """A task that was never submitted."""
    task = world.task(**given)
    return Subject(task, Hold(ORGANIZATION, task.id, world.ids.new(), world.ids.token()))


async def pending(world: World, **given: Any) -> Subject:
    """Due later."""
    return await _submitted(world, delay=DUE_IN, **given)


async def queued(world: World, **given: Any) -> Subject:
    """Due now."""
    return await _submitted(world, **given)


async def leased(world: World, **given: Any) -> Subject:
    """Claimed."""
    subject = await _submitted(world, **given)
    lease = await world.claim_one()
    return subject._replace(hold=lease.hold)


async def running(world: World, **given: Any) -> Subject:
    """Claimed and begun."""
    subject = await leased(world, **given)
    assert await world.renew(subject.hold, started=True)
    return subject


def _ended_by(settlement: Settlement) -> Recipe:
    async def recipe(world: World, **given: Any) -> Subject:
        subject = await leased(world, **given)
        assert (await world.settle(subject.hold, settlement)).answer is SettleAnswer.APPLIED
        return subject

    return recipe


async def cancelling(world: World, **given: Any) -> Subject:
    """Cancelled while it ran."""
    subject = await running(world, **given)
    assert (await world.cancel(subject.id)).answer is CancelAnswer.CANCELLING
    return subject


async def cancelled(world: World, **given: Any) -> Subject:
    """Cancelled while it waited."""
    subject = await _submitted(world, **given)
    assert (await world.cancel(subject.id)).answer is CancelAnswer.CANCELLED
    return subject


async def expired(world: World, **given: Any) -> Subject:
    """Its TTL passed."""
    subject = await _submitted(world, **{**given, "ttl": 5})
    world.advance(5)
    await world.ledger.expire(100)
    return subject


RECIPES: dict[TaskState | None, Recipe] = {
    None: nothing,
    TaskState.PENDING: pending,
    TaskState.QUEUED: queued,
    TaskState.LEASED: leased,
    TaskState.RUNNING: running,
    TaskState.RETRYING: _ended_by(retry_in(DUE_IN)),
    TaskState.CANCELLING: cancelling,
    TaskState.SUCCEEDED: _ended_by(DONE),
    TaskState.PARTIALLY_SUCCEEDED: _ended_by(PARTLY_DONE),
    TaskState.FAILED: _ended_by(FAILED_UNKEPT),
    TaskState.DEAD_LETTERED: _ended_by(FAILED),
    TaskState.CANCELLED: cancelled,
    TaskState.EXPIRED: expired,
}

WITH_DEADLINE: dict[TaskState, Recipe] = {
    TaskState.PENDING: _ended_by(Settlement.snoozed(us(HOUR))),
    TaskState.QUEUED: _ended_by(Settlement.handed_back()),
    TaskState.RETRYING: _ended_by(retry_in(HOUR)),
}
"""Waiting tasks that were claimed before, so that their execution deadline stands."""

Try = Callable[[World, Subject], Awaitable[bool]]
"""Tries an event through the protocol; whether the store says that it took it."""


def _by_holder(settlement: Settlement) -> Try:
    return _by(settlement, Guard.HOLDER)


def _by(settlement: Settlement, guard: Guard) -> Try:
    async def attempt(world: World, subject: Subject) -> bool:
        try:
            answer = await world.settle(subject.hold, settlement, guard, digest="tried")
        except IllegalTransition:
            return False
        assert (answer.state is None) == (answer.answer is SettleAnswer.LEASE_LOST)
        return answer.answer is SettleAnswer.APPLIED

    return attempt


async def _submit(world: World, subject: Subject) -> bool:
    (answer,) = await world.submit_all([subject.task])
    assert isinstance(answer, Submitted)
    assert answer.id == subject.id
    return not answer.replayed


async def _promote(world: World, subject: Subject) -> bool:
    return (await world.ledger.promote(100)).moved == 1


async def _postpone(world: World, subject: Subject) -> bool:
    return await world.ledger.postpone(ORGANIZATION, subject.id, await world.now_us() + us(HOUR))


async def _cancel(world: World, subject: Subject) -> bool:
    answer = await world.cancel(subject.id, actor="second", text="again", note="again")
    return answer.answer in (CancelAnswer.CANCELLED, CancelAnswer.CANCELLING)


async def _expire(world: World, subject: Subject) -> bool:
    swept = await world.ledger.expire(100)
    if swept.moved:
        return True
    return await _by_holder(Settlement.expired_unstarted())(world, subject)


async def _fail(world: World, subject: Subject) -> bool:
    swept = await world.ledger.expire(100)
    if swept.moved:
        return True
    return await _by_holder(FAILED)(world, subject)


async def _claim(world: World, subject: Subject) -> bool:
    return bool(await world.claim(5))


async def _start(world: World, subject: Subject) -> bool:
    return await world.renew(subject.hold, started=True) is not None


async def _redrive(world: World, subject: Subject) -> bool:
    return not isinstance(await world.redrive(subject.id), PerdureError)


TRIES: dict[Event, Try] = {
    Event.SUBMIT: _submit,
    Event.PROMOTE: _promote,
    Event.POSTPONE: _postpone,
    Event.CANCEL: _cancel,
    Event.EXPIRE: _expire,
    Event.FAIL: _fail,
    Event.CLAIM: _claim,
    Event.START: _start,
    Event.SUCCEED: _by_holder(DONE),
    Event.SUCCEED_PARTLY: _by_holder(PARTLY_DONE),
    Event.RETRY: _by_holder(retry_in(7)),
    Event.GIVE_UP: _by_holder(Settlement.gave_up("no need")),
    Event.SNOOZE: _by_holder(Settlement.snoozed(us(7))),
    Event.HAND_BACK: _by_holder(Settlement.handed_back()),
    Event.LOSE: _by(Settlement.lost_and_queued(Charge.LOSS), Guard.LEASE_OVER),
    Event.REVOKE: _by(Settlement.revoked_and_queued(), Guard.WORKER_REVOKED),
    Event.ACKNOWLEDGE: _by_holder(Settlement.acknowledged()),
    Event.CANCEL_DEADLINE: _by(Settlement.cancel_overdue(), Guard.CANCEL_OVER),
    Event.REDRIVE: _redrive,
}
"""Every event but `REVIVE`, which only a redrive of an ancestor brings about."""

HOLDERS_SETTLES = frozenset(
    {
        Event.EXPIRE,
        Event.FAIL,
        Event.SUCCEED,
        Event.SUCCEED_PARTLY,
        Event.RETRY,
        Event.GIVE_UP,
        Event.SNOOZE,
        Event.HAND_BACK,
    }
)
"""Settles of the holder: from `cancelling` each of them acknowledges the cancel and nothing more."""


async def make_ready(world: World, event: Event, state: TaskState | None) -> None:
    """Let time pass, or an operator act, so that nothing but the state stands in the event's way."""
    if event is Event.PROMOTE:
        world.advance(DUE_IN)
    elif event is Event.EXPIRE:
        world.advance(TTL)
    elif event is Event.FAIL and state in WITH_DEADLINE:
        world.advance(LIMIT)
    elif event in (Event.LOSE, Event.CANCEL_DEADLINE):
        world.advance(60)
    elif event is Event.REVOKE:
        await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")


TTL = 50
LIMIT = 50
"""Seconds: less than a lease."""


async def bring(world: World, state: TaskState | None, event: Event) -> Subject:
    """A task in a state, made so that the event could come to it."""
    if event is Event.EXPIRE:
        return await RECIPES[state](world, ttl=TTL)
    if event is Event.FAIL and state in WITH_DEADLINE:
        assert state is not None
        return await WITH_DEADLINE[state](world, execution_limit=LIMIT)
    return await RECIPES[state](world)
