"""What holders and workers send, beside others: renewals, reports, ends of many in one call, capacity, orders."""

from typing import Any

import pytest

from conformance.families import held
from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, PARTLY_DONE, World, retry_in, settling, us
from conformance.test_logs import line
from conformance.test_neighbours import OTHER
from perdure.domain.attempt import Progress, Renewal
from perdure.domain.states import TaskState
from perdure.errors import LeaseLost
from perdure.store.ledger import JobSubmitted, WorkerOrder

S = TaskState


async def revoke(world: World, worker: str = "w") -> None:
    await world.ledger.order(ORGANIZATION, worker, WorkerOrder.REVOKE, "bob")


# Renewals and reports


@pytest.mark.parametrize("started", [False, True])
async def test_a_revoked_worker_renews_and_starts_nothing(world: World, started: bool) -> None:
    lease = await world.lease()
    world.advance(10)
    await revoke(world)
    with world.unchanged():
        assert await world.renew(lease, started=started) is None


@pytest.mark.parametrize(
    "said", [{"progress": Progress(1)}, {"phase": "executing"}, {"checkpoint": "1"}, {"logs": (line(1, "said"),)}]
)
async def test_a_revoked_worker_reports_nothing(world: World, said: dict[str, Any]) -> None:
    lease = await world.lease()
    await revoke(world)
    with world.unchanged():
        assert isinstance(await world.report(lease, **said), LeaseLost)


async def test_past_its_time_to_stop_an_attempt_says_nothing_more(world: World) -> None:
    lease = await world.lease(lease=HOUR)
    await world.cancel(lease.hold.task_id, grace_us=us(5))
    assert not isinstance(await world.report(lease, logs=(line(1, "stopping"),)), LeaseLost)
    world.advance(5)
    with world.unchanged():
        assert isinstance(await world.report(lease, logs=(line(2, "still"),)), LeaseLost)


async def test_a_cancel_was_delivered_when_the_worker_says_so(world: World) -> None:
    lease = await world.lease(lease=HOUR)
    await world.cancel(lease.hold.task_id)
    world.advance(1)
    await world.renew(lease)
    (row,) = world.snapshot()["live"]
    assert row["cancel_delivered_us"] is None
    await world.ledger.renew([Renewal(lease.hold, True, delivered=True)])
    (row,) = world.snapshot()["live"]
    assert row["cancel_delivered_us"] == await world.now_us()


# Ends


@pytest.mark.parametrize("end", [DONE, PARTLY_DONE, FAILED], ids=["done", "partly", "failed"])
async def test_what_is_tried_again_lets_no_child_go_because_others_of_the_call_have_ended(
    world: World, end: Any
) -> None:
    family = await world.submit_job({"a": [], "b": [], "after-a": ["a"], "after-b": ["b"]})
    a, b = await held(world, family, "a", "b")
    await world.ledger.settle([settling(a, retry_in(5)), settling(b, end)])
    states = await world.states(family)
    assert (states["a"], states["after-a"]) == (S.RETRYING, S.PENDING)
    assert states["after-b"] is (S.CANCELLED if end is FAILED else S.QUEUED)
    assert (await world.look(family["after-a"])).waits == 1
    assert (await world.look_job(family)).open == (2 if end is FAILED else 3)


async def test_what_is_handed_back_keeps_its_order_beside_what_ends(world: World) -> None:
    ids = [await world.submit() for _ in range(4)]
    leases = await world.claim(4)
    from perdure.domain.settlement import Settlement

    back = Settlement.handed_back()
    await world.ledger.settle([settling(each, DONE if n == 1 else back) for n, each in enumerate(leases)])
    assert [lease.hold.task_id for lease in await world.claim(5)] == [ids[0], ids[2], ids[3]]


async def test_a_held_task_past_its_deadline_is_its_dutys_and_counted_as_held(world: World) -> None:
    lease = await world.lease(execution_limit=30, lease=HOUR)
    waiting = await world.lease(execution_limit=30)
    await world.settle(waiting, retry_in(25))
    world.advance(31)
    assert (await world.ledger.expire(10)).moved == 1
    assert await world.state(lease.hold.task_id) is S.LEASED
    assert await world.state(waiting.hold.task_id) is S.DEAD_LETTERED


# Workers


async def test_what_others_hold_takes_no_capacity(world: World) -> None:
    await world.submit_all([world.task() for _ in range(5)])
    await world.claim(3)
    await world.worker("v", capacity=2)
    assert len(await world.claim(5, "v")) == 2
    assert await world.claim(5, "v") == []


async def test_a_worker_that_has_left_is_given_no_tasks(world: World) -> None:
    await world.submit()
    await world.worker("v")
    await world.ledger.leave("v")
    assert await world.claim(1, "v") == []
    assert len(await world.claim(1)) == 1


async def test_a_worker_that_has_left_is_given_no_orders_and_has_left_when_it_left_first(world: World) -> None:
    await world.worker("v")
    await world.ledger.leave("v")
    left = await world.now_us()
    world.advance(5)
    with world.unchanged():
        await world.ledger.leave("v")
        assert await world.ledger.heartbeat("v", 1) is WorkerOrder.REVOKE
    assert await world.ledger.orders(["v", "w", "nobody"]) == [
        WorkerOrder.REVOKE,
        WorkerOrder.WORK,
        WorkerOrder.REVOKE,
    ]
    (row,) = [row for row in world.snapshot()["workers"] if row["id"] == "v"]
    assert row["left_us"] == left


async def test_an_operator_orders_workers_of_the_own_organization_among_others(world: World) -> None:
    await world.worker("v", organizations=(OTHER, ORGANIZATION))
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.DRAIN, "bob")
    assert await world.ledger.heartbeat("v", 1) is WorkerOrder.DRAIN


# Jobs


@pytest.mark.parametrize("organization", ["aaa", "zzz"])
async def test_a_job_that_is_sent_again_is_answered_with_its_own_tasks(world: World, organization: str) -> None:
    job = world.job({"a": [], "b": ["a"]}, id="one", organization=organization)
    mine = world.job({"a": [], "c": []}, id="one")
    for each in (job, mine) if organization < ORGANIZATION else (mine, job):
        await world.ledger.submit_jobs([each])
    with world.unchanged():
        (again,) = await world.ledger.submit_jobs([mine])
    assert isinstance(again, JobSubmitted)
    assert (again.replayed, set(again.task_ids)) == (True, {"a", "c"})
    assert set(again.task_ids.values()) == {task.id for task in mine.tasks}
