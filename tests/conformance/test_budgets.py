"""Attempts and losses are spent exactly, by nobody but those who should, and everything ends when they are."""

import pytest

from conformance.making import (
    BOOM,
    DONE,
    FAILED,
    FIXED,
    ORGANIZATION,
    World,
    doubt_settled,
    retry_in,
    settling,
    us,
)
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.outcome import Failed, HandedBack, Outcome, Snoozed
from perdure.domain.settlement import Settlement, settle
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.store.ledger import Settled, WorkerOrder


async def decided(world: World, lease: Lease, outcome: Outcome) -> Settled:
    """Settle as the engine does: read the facts, decide, write."""
    (facts,) = await world.ledger.facts([lease.hold])
    assert facts is not None
    return await world.settle(lease, settle(outcome, facts, FIXED, 0.0))


async def test_a_task_runs_as_often_as_its_attempts_say(world: World) -> None:
    task_id = await world.submit(max_attempts=3)
    numbers = []
    while await world.state(task_id) is not TaskState.DEAD_LETTERED:
        lease = await world.claim_one()
        numbers.append(lease.attempt)
        await decided(world, lease, Failed(BOOM))
        world.advance(10)
    assert numbers == [1, 2, 3]
    task = await world.look(task_id)
    assert (task.attempt, task.reason) == (3, Reason.EXHAUSTED)
    assert task.last_error is not None
    assert (task.last_error.type, task.last_error.message) == ("ValueError", "boom")
    attempts = await world.views.attempts(ORGANIZATION, task_id)
    assert [each.state for each in attempts] == [AttemptState.FAILED] * 3
    assert all(each.error and each.error.traceback for each in attempts)


async def test_a_failed_task_waits_its_backoff(world: World) -> None:
    lease = await world.lease()
    await decided(world, lease, Failed(BOOM))
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.due_us, task.attempt) == (TaskState.RETRYING, await world.now_us() + us(10), 2)
    assert task.last_error is not None


async def test_three_losses_are_three_runs(world: World) -> None:
    task_id = await world.submit()
    states = []
    for _ in range(3):
        lease = await world.claim_one()
        assert lease.attempt == 1
        world.advance(60)
        (answer,) = await world.sweep()
        states.append(answer.state)
        world.advance(10)
    assert states == [TaskState.QUEUED, TaskState.RETRYING, TaskState.DEAD_LETTERED]
    task = await world.look(task_id)
    assert (task.losses, task.reason, task.attempt) == (3, Reason.WORKER_LOST, 1)
    attempts = await world.views.attempts(ORGANIZATION, task_id)
    assert [(each.state, each.reason) for each in attempts] == [(AttemptState.LOST, Reason.WORKER_LOST)] * 3


async def test_a_loss_spends_no_attempt(world: World) -> None:
    lease = await world.lease()
    world.advance(60)
    await world.sweep()
    task = await world.look(lease.hold.task_id)
    assert (task.attempt, task.losses) == (1, 1)


async def test_a_loss_that_counts_spends_both(world: World) -> None:
    task_id = await world.submit(on_loss="count", max_attempts=2)
    await world.claim_one()
    world.advance(60)
    await world.sweep()
    task = await world.look(task_id)
    assert (task.state, task.attempt, task.losses) == (TaskState.QUEUED, 2, 1)
    await world.claim_one()
    world.advance(60)
    (answer,) = await world.sweep()
    assert answer.state is TaskState.DEAD_LETTERED
    assert (await world.look(task_id)).reason is Reason.WORKER_LOST


async def test_a_task_that_must_not_be_replayed_ends_with_its_first_loss(world: World) -> None:
    lease = await world.lease(on_loss="fail")
    world.advance(60)
    (answer,) = await world.sweep()
    assert answer.state is TaskState.DEAD_LETTERED
    assert (await world.look(lease.hold.task_id)).reason is Reason.WORKER_LOST


async def test_losses_in_doubtful_time_cost_nothing(world: World) -> None:
    task_id = await world.submit(max_losses=1)
    for _ in range(5):
        await world.claim_one()
        world.advance(60)
        (answer,) = await world.sweep(charged=False)
        assert answer.state is TaskState.QUEUED
    assert (await world.look(task_id)).losses == 0


async def test_nothing_is_found_lost_while_losses_are_suspended(world: World) -> None:
    await world.lease()
    until = await world.now_us() + us(100)
    await world.ledger.suspend_losses(until)
    await world.ledger.suspend_losses(until - us(50))
    assert await world.ledger.losses_suspended_until() == until
    world.advance(60)
    assert await world.ledger.find_doubtful(10) == []
    world.advance(40)
    assert len(await world.ledger.find_doubtful(10)) == 1


async def test_a_suspension_stops_a_loss_that_was_already_found(world: World) -> None:
    lease = await world.lease()
    world.advance(60)
    (found,) = await world.ledger.find_doubtful(10)
    await world.ledger.suspend_losses(await world.now_us() + us(60))
    with world.unchanged():
        await world.ledger.settle([doubt_settled(found, FIXED, True)])
    assert await world.state(lease.hold.task_id) is TaskState.LEASED


async def test_a_suspension_revives_no_lease(world: World) -> None:
    lease = await world.lease()
    world.advance(60)
    await world.ledger.suspend_losses(await world.now_us() + us(60))
    with world.unchanged(late_results=True):
        assert await world.renew(lease) is None
        assert (await world.settle(lease, DONE)).state is None


async def test_snoozes_are_counted_and_cost_nothing(world: World) -> None:
    task_id = await world.submit(max_attempts=1)
    for n in range(5):
        lease = await world.claim_one()
        (facts,) = await world.ledger.facts([lease.hold])
        assert facts is not None
        assert (facts.snoozes, facts.failures, facts.losses) == (n, 0, 0)
        answer = await decided(world, lease, Snoozed(us(7)))
        assert answer.state is TaskState.PENDING
        assert (await world.look(task_id)).due_us == await world.now_us() + us(7)
        world.advance(7)
    attempts = await world.views.attempts(ORGANIZATION, task_id)
    assert [each.state for each in attempts] == [AttemptState.SNOOZED] * 5


async def test_hand_backs_are_counted_cost_nothing_and_end_at_their_bound(world: World) -> None:
    task_id = await world.submit(max_attempts=1)
    runs = 0
    while await world.state(task_id) is not TaskState.DEAD_LETTERED:
        lease = await world.claim_one()
        runs += 1
        await decided(world, lease, HandedBack())
    assert runs == limits.HAND_BACKS_MAX + 1
    assert (await world.look(task_id)).losses == 0


async def test_a_permanent_failure_ends_it_whatever_the_budget(world: World) -> None:
    lease = await world.lease(max_attempts=100)
    answer = await decided(world, lease, Failed(BOOM, permanent=True))
    assert answer.state is TaskState.DEAD_LETTERED


async def test_facts_tell_what_the_decision_needs(world: World) -> None:
    lease = await world.lease(max_attempts=7, max_losses=5, on_loss="count", ttl=500, execution_limit=900)
    (facts,) = await world.ledger.facts([lease.hold])
    now = await world.now_us()
    assert facts is not None
    assert (facts.now_us, facts.state) == (now, TaskState.LEASED)
    assert (facts.max_attempts, facts.max_losses, facts.on_loss) == (7, 5, "count")
    assert (facts.deadline_us, facts.expires_us) == (now + us(900), now + us(500))
    assert (facts.dead_letters, facts.receipt) == (True, None)


async def test_a_queue_without_dead_letters_says_so_in_the_facts(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "default", '{"dead_letters":false}', "bob")
    lease = await world.lease()
    (facts,) = await world.ledger.facts([lease.hold])
    assert facts is not None
    assert not facts.dead_letters
    await decided(world, lease, Failed(BOOM, permanent=True))
    assert await world.state(lease.hold.task_id) is TaskState.FAILED


async def test_only_its_own_queues_policy_says_whether_dead_letters_are_kept(world: World) -> None:
    document = '{"dead_letters":false}'
    await world.definitions.put("other", "queue", "default", document, "bob")
    await world.definitions.put(ORGANIZATION, "queue", "side", document, "bob")
    await world.definitions.put(ORGANIZATION, "organization", "default", document, "bob")
    await world.definitions.put(ORGANIZATION, "kind", "default", document, "bob")
    lease = await world.lease(execution_limit=30)
    (facts,) = await world.ledger.facts([lease.hold])
    assert facts is not None
    assert facts.dead_letters
    await world.settle(lease, Settlement.handed_back())
    world.advance(30)
    await world.ledger.expire(10)
    assert await world.state(lease.hold.task_id) is TaskState.DEAD_LETTERED


@pytest.mark.parametrize(
    ("settlement", "kept"),
    [
        (retry_in(5), True),
        (Settlement.snoozed(us(5)), False),
        (Settlement.handed_back(), False),
    ],
    ids=["retry", "snooze", "hand back"],
)
async def test_a_retry_keeps_the_ttl_and_the_others_clear_it(world: World, settlement: Settlement, kept: bool) -> None:
    lease = await world.lease(ttl=100)
    expires = (await world.look(lease.hold.task_id)).expires_us
    await world.settle(lease, settlement)
    assert (await world.look(lease.hold.task_id)).expires_us == (expires if kept else None)
    world.advance(100)
    await world.ledger.expire(10)
    assert (await world.state(lease.hold.task_id) is TaskState.EXPIRED) == kept


async def test_a_loss_and_a_revoke_clear_the_ttl(world: World) -> None:
    lease = await world.lease(ttl=55, lease=20)
    world.advance(20)
    await world.sweep()
    assert (await world.look(lease.hold.task_id)).expires_us is None
    await world.claim_one()
    revoked = await world.lease(ttl=55)
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    await world.sweep()
    assert (await world.look(revoked.hold.task_id)).expires_us is None


async def test_a_redrive_gives_fresh_budgets_deadline_and_ttl(world: World) -> None:
    task_id = await world.submit(max_attempts=2, ttl=1000, execution_limit=5000)
    lease = await world.claim_one()
    await world.settle(lease, retry_in(1))
    world.advance(100)
    lease = await world.claim_one()
    world.advance(60)
    await world.sweep()
    lease = await world.claim_one()
    await world.finish(lease, settlement=FAILED)
    before = await world.look(task_id)
    assert (before.attempt, before.losses) == (2, 1)
    assert await world.redrive(task_id) is TaskState.QUEUED
    task = await world.look(task_id)
    assert (task.generation, task.attempt, task.losses) == (2, 1, 0)
    assert task.deadline_us is None
    assert task.expires_us == await world.now_us() + us(1000)
    assert task.finished_us is None
    assert task.reason is None
    again = await world.claim_one()
    assert again.deadline_us == us(5000)
    assert again.attempt == 1
    attempts = await world.views.attempts(ORGANIZATION, task_id)
    assert [each.generation for each in attempts] == [1, 1, 1, 2]


async def test_a_hundred_failures_in_one_call_are_each_charged_once(world: World) -> None:
    await world.submit_all([world.task() for _ in range(100)])
    leases = await world.claim(100)
    await world.ledger.settle([settling(each, retry_in(1)) for each in leases])
    for lease in leases[::10]:
        assert (await world.look(lease.hold.task_id)).attempt == 2


async def test_an_ended_task_tells_the_number_of_its_last_attempt(world: World) -> None:
    lease = await world.lease()
    await world.settle(lease, retry_in(1))
    world.advance(2)
    again = await world.claim_one()
    assert (await world.look(again.hold.task_id)).attempt == 2
    await world.finish(again, settlement=FAILED)
    assert (await world.look(again.hold.task_id)).attempt == 2
    await world.redrive(again.hold.task_id)
    await world.cancel(again.hold.task_id)
    task = await world.look(again.hold.task_id)
    assert (task.state, task.generation, task.attempt) == (TaskState.CANCELLED, 2, 0)
