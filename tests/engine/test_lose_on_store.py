"""Lost, overdue, revoked and ignored: on a real store, attempts that nobody else ends are ended."""

import asyncio
from typing import Any

import apsw

from engine.making import BOOM, DONE, ME, Bench
from perdure.ambient import Chance
from perdure.domain.attempt import Lease, Renewal
from perdure.domain.outcome import Succeeded
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.engine.engine import Engine
from perdure.store.ledger import Doubtful, SettleAnswer, WorkerOrder

LEASE_US = 60_000_000


async def lose_after(bench: Bench, seconds: float, duty: Any = None) -> None:
    await asyncio.sleep(seconds)
    if duty is None:
        await bench.run_duty("lose")
    else:
        await duty.run_once(bench.clock.monotonic_us())


async def leased(bench: Bench, **fields: Any) -> Lease:
    await bench.worker()
    await bench.submit(**fields)
    return await bench.lease()


async def test_a_killed_workers_tasks_are_claimable_within_its_lease_and_5_s(bench: Bench) -> None:
    async with bench.engine.duty_runner():
        await asyncio.sleep(100)
        lease = await leased(bench, lease=5.0)
        await asyncio.sleep(10)
        assert (await bench.view(lease.hold.task_id)).state == TaskState.QUEUED
        again = await bench.lease()
    assert (again.attempt, again.hold.task_id) == (lease.attempt, lease.hold.task_id)
    assert again.fence > lease.fence
    assert (await bench.settle(lease, DONE)).answer is SettleAnswer.LEASE_LOST
    assert (await bench.settle(again, DONE)).answer is SettleAnswer.APPLIED


async def test_a_task_that_kills_its_workers_ends_after_its_budget(bench: Bench) -> None:
    runs = 0
    async with bench.engine.duty_runner():
        lease = await leased(bench, lease=5.0, max_losses=3)
        while True:
            runs += 1
            await asyncio.sleep(120)
            leases = await bench.engine.claim("w", 1)
            if not leases:
                break
    assert runs == 3
    view = await bench.view(lease.hold.task_id)
    assert (view.state, view.reason, view.losses) == (TaskState.DEAD_LETTERED, "worker_lost", 3)


async def test_a_worker_that_renews_for_ever_is_ended_at_its_deadline(bench: Bench) -> None:
    lease = await leased(bench, execution_limit=60.0)
    for _ in range(10):
        await bench.engine.renew([Renewal(lease.hold, True)])
        await lose_after(bench, 10)
    view = await bench.view(lease.hold.task_id)
    assert (view.state, view.reason) == (TaskState.DEAD_LETTERED, "deadline")


async def test_a_handler_past_its_timeout_and_grace_is_ended_as_a_timeout(bench: Bench) -> None:
    lease = await leased(bench, timeout=10.0)
    await bench.engine.renew([Renewal(lease.hold, True)])
    for _ in range(4):
        await bench.engine.renew([Renewal(lease.hold, True)])
        await lose_after(bench, 11)
    view = await bench.view(lease.hold.task_id)
    assert (view.state, view.attempt) == (TaskState.RETRYING, 2)


async def test_a_receipt_makes_a_lost_attempt_succeed(bench: Bench) -> None:
    lease = await leased(bench)
    connection = apsw.Connection(bench.store.path)
    connection.execute("BEGIN IMMEDIATE")
    bench.engine.settle_within(connection, lease.hold, 7)
    connection.execute("COMMIT")
    connection.close()
    await lose_after(bench, 61)
    view = await bench.view(lease.hold.task_id)
    assert (view.state, view.result, view.losses) == (TaskState.SUCCEEDED, Body(b"7"), 0)


async def test_a_cancel_that_its_holder_ignores_ends_at_the_cancel_deadline(bench: Bench) -> None:
    lease = await leased(bench)
    await bench.engine.cancel([lease.hold.task_id], ME, text="enough")
    await lose_after(bench, 29)
    assert (await bench.view(lease.hold.task_id)).state == TaskState.CANCELLING
    await lose_after(bench, 2)
    assert (await bench.view(lease.hold.task_id)).state == TaskState.CANCELLED


async def test_a_revoked_workers_task_is_queued_at_no_cost(bench: Bench) -> None:
    lease = await leased(bench)
    await bench.engine.order_worker("w", WorkerOrder.REVOKE, ME)
    await bench.run_duty("lose")
    view = await bench.view(lease.hold.task_id)
    assert (view.state, view.losses, view.attempt) == (TaskState.QUEUED, 0, 1)
    assert (await bench.settle(lease, Succeeded(Body(b"1")))).answer is SettleAnswer.LEASE_LOST


async def test_two_runners_at_once_end_an_attempt_once(bench: Bench) -> None:
    lease = await leased(bench)
    await asyncio.sleep(61)
    moved = [await bench.run_duty("lose") for _ in range(2)]
    assert [each.moved for each in moved] == [1, 0]
    assert (await bench.view(lease.hold.task_id)).losses == 1


async def test_a_suspension_reaches_other_runners_through_the_store(bench: Bench) -> None:
    lease = await leased(bench)
    await asyncio.sleep(50)
    await bench.store.ledger.suspend_losses(await bench.store.ledger.now_us() + LEASE_US)
    other = Engine(bench.store, clock=bench.clock, ids=bench.ids, chance=Chance(2))
    (duty,) = [each for each in other.duties() if each.name == "lose"]
    for _ in range(14):
        await lose_after(bench, 4, duty)
        assert (await bench.view(lease.hold.task_id)).state == TaskState.LEASED
    for _ in range(2):
        await lose_after(bench, 4, duty)
    view = await bench.view(lease.hold.task_id)
    assert (view.state, view.losses) == (TaskState.QUEUED, 0)


async def test_a_completion_that_comes_between_finding_and_ending_wins(bench: Bench) -> None:
    lease = await leased(bench, timeout=1.0)
    await bench.engine.renew([Renewal(lease.hold, True)])
    await asyncio.sleep(40)
    find = bench.store.ledger.find_doubtful

    async def found_and_then_settled(limit: int) -> list[Doubtful]:
        found = await find(limit)
        assert found
        assert (await bench.settle(lease, BOOM)).answer is SettleAnswer.APPLIED
        return found

    bench.store.ledger.find_doubtful = found_and_then_settled  # type: ignore[method-assign]
    swept = await bench.run_duty("lose")
    assert swept.moved == 0
    assert (await bench.view(lease.hold.task_id)).attempt == 2
