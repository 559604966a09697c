"""Short ways to make unique tasks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from conformance.making import DONE, FAILED, World, retry_in
from perdure.domain.gate import Gate
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.unique import SubmitOutcome, Unique
from perdure.errors import PerdureError
from perdure.store.ledger import Submitted

CREATED, EXISTING = SubmitOutcome.CREATED, SubmitOutcome.EXISTING
REPLACED, DEBOUNCED = SubmitOutcome.REPLACED, SubmitOutcome.DEBOUNCED
KEY = 'work {"customer":"acme"}'


def options(choice: Any = "reject", key: str = KEY, gates: Sequence[Gate] = (), **given: Any) -> str:
    """The options of a unique task."""
    document: dict[str, Any] = {"unique": Unique(on_conflict=choice, **given).key(key)}
    return msgspec.json.encode({**document, **({"gates": gates} if gates else {})}).decode()


async def try_submit(world: World, unique: str = "reject", **given: Any) -> Submitted | PerdureError:
    """Submit a unique task; whatever comes of it."""
    of_task = {name: given.pop(name) for name in ("payload", "ttl", "delay", "id", "organization") if name in given}
    for name in ("idempotency_key", "request_hash", "queue"):
        if name in given:
            of_task[name] = given.pop(name)
    (answer,) = await world.submit_all([world.task(options=options(unique, **given), **of_task)])
    return answer


async def submit(world: World, unique: str = "reject", **given: Any) -> Submitted:
    """Submit a unique task that is not refused."""
    answer = await try_submit(world, unique, **given)
    assert isinstance(answer, Submitted), answer
    return answer


async def in_state(world: World, state: TaskState, **given: Any) -> str:
    """A unique task in this state."""
    if state is TaskState.PENDING:
        return (await submit(world, delay=1000, **given)).id
    if state is TaskState.EXPIRED:
        task = (await submit(world, ttl=1, **given)).id
        world.advance(1)
        await world.ledger.expire(100)
        return task
    task = (await submit(world, **given)).id
    if state is TaskState.QUEUED:
        return task
    if state is TaskState.CANCELLED:
        await world.cancel(task)
        return task
    lease = await world.claim_one()
    if state in (TaskState.RUNNING, TaskState.CANCELLING):
        await world.start(lease)
    if state is TaskState.CANCELLING:
        await world.cancel(task)
    settlements = {
        TaskState.RETRYING: retry_in(1000),
        TaskState.SUCCEEDED: DONE,
        TaskState.PARTIALLY_SUCCEEDED: Settlement.succeeded_partly(DONE.result, "most") if DONE.result else DONE,
        TaskState.DEAD_LETTERED: FAILED,
        TaskState.FAILED: Settlement.failed(FAILED.error, Reason.EXHAUSTED, dead_letters=False)
        if FAILED.error
        else FAILED,
    }
    if state in settlements:
        await world.finish(lease, settlement=settlements[state])
    assert await world.state(task) is state
    return task
