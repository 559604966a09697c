"""Inside the caller's own transaction: a task exists exactly if it commits, an effect and its settlement are one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, RESULT, World, settling, us
from perdure.domain.attempt import Lease
from perdure.domain.outcome import Failed, Failure, HandedBack, Snoozed, Succeeded
from perdure.domain.settlement import Receipt, Settlement, settle
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.domain.task import Body
from perdure.domain.unique import SubmitOutcome, Unique
from perdure.errors import LeaseLost, Misuse, UniqueConflict
from perdure.store.ledger import CancelAnswer, SettleAnswer, Submitted, WorkerOrder

EFFECT = Body(b'"from the receipt"')


class Rollback(Exception):
    """Raised inside `within` to undo."""


@pytest.fixture(autouse=True)
def _only_with_the_capability(world: World) -> None:
    if not world.store.capabilities.caller_transactions:
        pytest.skip("the store does not declare caller transactions")


@contextmanager
def within(world: World, connection: Any = None) -> Iterator[Any]:
    """A transaction of the caller's own, undone by `Rollback`."""
    assert world.plug.connect is not None
    own = connection or world.plug.connect(world.folder)
    own.execute(world.plug.begin)
    try:
        yield own
    except Rollback:
        own.execute("ROLLBACK")
    except BaseException:
        own.execute("ROLLBACK")
        raise
    else:
        own.execute("COMMIT")
    finally:
        if connection is None:
            own.close()


def receipt(lease: Lease, partly: bool = False) -> Receipt:
    return Receipt(lease.hold.attempt_id, partly, EFFECT, "kept")


def write_receipt(world: World, lease: Lease, partly: bool = False) -> None:
    caller: Any = world.store.caller  # type: ignore[attr-defined]
    with within(world) as own:
        caller.settle(own, lease.hold, receipt(lease, partly))


def submit_within(world: World, connection: Any, *tasks: Any) -> list[Any]:
    caller: Any = world.store.caller  # type: ignore[attr-defined]
    answers: list[Any] = caller.submit(connection, tasks)
    return answers


# Submitting


async def test_a_task_exists_once_the_caller_commits(world: World) -> None:
    task = world.task()
    with within(world) as own:
        (answer,) = submit_within(world, own, task)
        assert await world.views.task(ORGANIZATION, task.id) is None
    assert answer == Submitted(task.id, TaskState.PENDING, False)
    assert await world.state(task.id) is TaskState.PENDING
    assert (await world.claim_one()).hold.task_id == task.id


async def test_a_task_does_not_exist_when_the_caller_rolls_back(world: World) -> None:
    with world.unchanged(), within(world) as own:
        submit_within(world, own, world.task(), world.task())
        raise Rollback


async def test_the_callers_rows_and_the_task_are_one(world: World) -> None:
    with within(world) as own:
        own.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    for undo in (True, False):
        with within(world) as own:
            own.execute("INSERT INTO orders (id) VALUES (1)")
            submit_within(world, own, world.task())
            if undo:
                raise Rollback
    rows = world.snapshot()
    assert (len(rows["orders"]), len(rows["tasks"])) == (1, 1)


async def test_a_delayed_task_of_the_caller_waits_for_its_time(world: World) -> None:
    with within(world) as own:
        submit_within(world, own, world.task(delay=30))
    assert await world.claim(5) == []
    world.advance(30)
    assert len(await world.claim(5)) == 1


async def test_a_key_used_within_is_a_key_everywhere(world: World) -> None:
    first = world.task(idempotency_key="k", request_hash="h")
    with within(world) as own:
        submit_within(world, own, first)
    (again,) = await world.submit_all([world.task(idempotency_key="k", request_hash="h")])
    assert isinstance(again, Submitted)
    assert (again.id, again.replayed) == (first.id, True)
    with world.unchanged(), within(world) as own:
        (once_more,) = submit_within(world, own, world.task(idempotency_key="k", request_hash="h"))
    assert (once_more.id, once_more.replayed) == (first.id, True)


async def test_submitting_outside_a_transaction_is_misuse(world: World) -> None:
    assert world.plug.connect is not None
    own = world.plug.connect(world.folder)
    with world.unchanged(), pytest.raises(Misuse):
        submit_within(world, own, world.task())
    own.close()


async def test_submitting_through_another_database_is_misuse(world: World) -> None:
    assert world.plug.elsewhere is not None
    own = world.plug.elsewhere(world.folder)
    own.execute(world.plug.begin)
    with world.unchanged(), pytest.raises(Misuse):
        submit_within(world, own, world.task())
    own.close()


async def test_a_submission_within_is_cancelled_and_expired_like_any_other(world: World) -> None:
    tasks = [world.task(), world.task(ttl=10)]
    with within(world) as own:
        submit_within(world, own, *tasks)
    assert (await world.cancel(tasks[0].id)).answer is CancelAnswer.CANCELLED
    world.advance(10)
    await world.ledger.expire(10)
    assert await world.state(tasks[1].id) is TaskState.EXPIRED


# Settling


@pytest.mark.parametrize("partly", [False, True])
async def test_the_settle_that_follows_takes_the_receipt(world: World, partly: bool) -> None:
    lease = await world.lease()
    write_receipt(world, lease, partly)
    assert await world.ledger.receipt_known(lease.hold)
    assert await world.state(lease.hold.task_id) in (TaskState.LEASED, TaskState.RUNNING)
    answer = await world.settle(lease, DONE)
    expected = TaskState.PARTIALLY_SUCCEEDED if partly else TaskState.SUCCEEDED
    assert (answer.answer, answer.state) == (SettleAnswer.APPLIED, expected)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.result, task.summary) == (expected, EFFECT, "kept")


async def test_a_receipt_that_was_rolled_back_never_was(world: World) -> None:
    lease = await world.lease()
    caller: Any = world.store.caller  # type: ignore[attr-defined]
    with world.unchanged(), within(world) as own:
        caller.settle(own, lease.hold, receipt(lease))
        raise Rollback
    assert not await world.ledger.receipt_known(lease.hold)
    await world.finish(lease)
    assert (await world.look(lease.hold.task_id)).result == RESULT


async def test_a_receipt_outlives_its_worker(world: World) -> None:
    lease = await world.lease(max_losses=1)
    write_receipt(world, lease)
    world.advance(60)
    (answer,) = await world.sweep()
    assert answer.state is TaskState.SUCCEEDED
    task = await world.look(lease.hold.task_id)
    assert (task.result, task.losses, task.reason) == (EFFECT, 0, Reason.OK)
    (attempt,) = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert attempt.state is AttemptState.SUCCEEDED
    assert await world.claim(5) == []


async def test_a_receipt_before_the_cancel_wins(world: World) -> None:
    lease = await world.lease()
    write_receipt(world, lease)
    assert (await world.cancel(lease.hold.task_id)).answer is CancelAnswer.CANCELLING
    answer = await world.settle(lease, Settlement.acknowledged())
    assert answer.state is TaskState.SUCCEEDED
    assert (await world.look(lease.hold.task_id)).result == EFFECT


@pytest.mark.parametrize("how", ["lease", "cancel deadline", "deadline", "revoke", "timeout"])
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("partly", [False, True])
async def test_a_receipt_wins_however_the_attempt_is_ended(
    world: World, how: str, cancelled: bool, partly: bool
) -> None:
    lease = await world.lease(execution_limit=50 if how == "deadline" else 500, timeout=5)
    await world.start(lease)
    write_receipt(world, lease, partly)
    if cancelled or how == "cancel deadline":
        await world.cancel(lease.hold.task_id, grace_us=us(20) if how == "cancel deadline" else us(200))
    if how == "revoke":
        await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    else:
        world.advance({"lease": 60, "deadline": 50, "cancel deadline": 20, "timeout": 35}[how])
    answers = await world.sweep()
    if how == "timeout" and cancelled:
        assert answers == []
        world.advance(200)
        answers = await world.sweep()
    assert [each.answer for each in answers] == [SettleAnswer.APPLIED]
    task = await world.look(lease.hold.task_id)
    assert task.state is (TaskState.PARTIALLY_SUCCEEDED if partly else TaskState.SUCCEEDED)
    assert task.result == EFFECT


@pytest.mark.parametrize(
    "outcome",
    [Succeeded(RESULT), Failed(Failure("E", "after the commit")), Snoozed(us(5)), HandedBack()],
    ids=lambda each: type(each).__name__,
)
async def test_a_receipt_wins_over_what_the_handler_says_later(world: World, outcome: Any) -> None:
    from conformance.making import FIXED

    lease = await world.lease()
    write_receipt(world, lease)
    (facts,) = await world.ledger.facts([lease.hold])
    assert facts is not None
    assert facts.receipt is not None
    answer = await world.settle(lease, settle(outcome, facts, FIXED, 0.0))
    assert answer.state is TaskState.SUCCEEDED
    assert (await world.look(lease.hold.task_id)).result == EFFECT


@pytest.mark.parametrize("settlement", [FAILED, Settlement.handed_back(), Settlement.gave_up("why")])
async def test_a_receipt_that_the_decision_did_not_know_of_still_wins(world: World, settlement: Settlement) -> None:
    lease = await world.lease()
    write_receipt(world, lease)
    answer = await world.settle(lease, settlement)
    assert answer.state is TaskState.SUCCEEDED


async def cancelled(world: World, lease: Lease) -> None:
    await world.cancel(lease.hold.task_id)


async def run_out(world: World, lease: Lease) -> None:
    world.advance(60)


async def lost(world: World, lease: Lease) -> None:
    world.advance(60)
    await world.sweep()


async def ended(world: World, lease: Lease) -> None:
    await world.finish(lease)


async def worker_revoked(world: World, lease: Lease) -> None:
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")


async def past_the_deadline(world: World, lease: Lease) -> None:
    world.advance(50)


@pytest.mark.parametrize("before", [cancelled, run_out, lost, ended, worker_revoked, past_the_deadline])
async def test_an_attempt_that_may_not_write_gets_no_receipt(world: World, before: Any) -> None:
    lease = await world.lease(execution_limit=50 if before is past_the_deadline else HOUR)
    await before(world, lease)
    with world.unchanged(), pytest.raises(LeaseLost):
        write_receipt(world, lease)


@pytest.mark.parametrize("field", ["token", "attempt_id", "task_id", "organization"])
async def test_another_hold_gets_no_receipt(world: World, field: str) -> None:
    lease = await world.lease()
    other = lease._replace(hold=lease.hold._replace(**{field: world.ids.new()}))
    with world.unchanged(), pytest.raises(LeaseLost):
        write_receipt(world, other)


async def test_a_job_goes_on_from_a_receipt(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    lease = await world.claim_one()
    write_receipt(world, lease)
    world.advance(60)
    await world.sweep()
    await world.worker()
    (child,) = await world.claim(5)
    assert child.hold.task_id == family["b"]
    inputs = await world.ledger.inputs(child.hold)
    assert inputs["a"].result == EFFECT


async def test_a_repeat_of_a_settle_by_receipt_is_answered_the_same(world: World) -> None:
    lease = await world.lease()
    write_receipt(world, lease)
    first = await world.ledger.settle([settling(lease, DONE)])
    with world.unchanged():
        again = await world.ledger.settle([settling(lease, DONE)])
    assert again[0].state is first[0].state is TaskState.SUCCEEDED
    assert again[0].answer is SettleAnswer.REPLAYED


# Unique tasks


def unique(choice: Any = "reject", **given: Any) -> str:
    return msgspec.json.encode({"unique": Unique(on_conflict=choice, **given).key("work")}).decode()


async def test_a_key_taken_within_is_held_once_the_caller_commits(world: World) -> None:
    with world.unchanged(), within(world) as own:
        submit_within(world, own, world.task(options=unique()))
        raise Rollback
    first = world.task(options=unique())
    with within(world) as own:
        submit_within(world, own, first)
    (refused,) = await world.submit_all([world.task(options=unique())])
    assert isinstance(refused, UniqueConflict)
    assert refused.task_id == first.id


@pytest.mark.parametrize(
    ("choice", "given", "outcome"),
    [("replace", {}, SubmitOutcome.REPLACED), ("debounce", {"wait": 5}, SubmitOutcome.DEBOUNCED)],
)
async def test_a_holder_is_moved_exactly_if_the_caller_commits(
    world: World, choice: str, given: dict[str, Any], outcome: SubmitOutcome
) -> None:
    first = await world.submit(options=unique())
    with world.unchanged(), within(world) as own:
        (answer,) = submit_within(world, own, world.task(options=unique(choice, **given)))
        assert answer.outcome is outcome
        raise Rollback
    with within(world) as own:
        submit_within(world, own, world.task(options=unique(choice, **given)))
    moved = TaskState.CANCELLED if outcome is SubmitOutcome.REPLACED else TaskState.PENDING
    assert await world.state(first) is moved
