"""The workers that a store knows: many are noted as there in one call, and told what they are ordered."""

import pytest

from conformance.making import ORGANIZATION, World, us
from perdure.store.ledger import WorkerOrder

WORK, PAUSE, DRAIN, REVOKE = WorkerOrder.WORK, WorkerOrder.PAUSE, WorkerOrder.DRAIN, WorkerOrder.REVOKE


async def seen_us(world: World) -> dict[str, int]:
    return {worker.id: worker.seen_us for worker in await world.views.workers(ORGANIZATION, None)}


async def test_many_workers_are_noted_as_there_in_one_call_and_others_are_not(world: World) -> None:
    for worker in ("a", "b", "c"):
        await world.worker(worker)
    before = await seen_us(world)
    world.advance(30)
    assert await world.ledger.seen(["a", "c"]) == [WORK, WORK]
    after = await seen_us(world)
    assert after == {**before, "a": before["a"] + us(30), "c": before["c"] + us(30)}


async def test_for_how_long_nothing_was_heard_is_told_by_the_clock_of_the_store(world: World) -> None:
    await world.worker("a")
    world.advance(30)
    await world.worker("b")
    silent = {worker.id: worker.silent for worker in await world.views.workers(ORGANIZATION, None)}
    assert (silent["a"], silent["b"]) == (pytest.approx(30), 0)


async def test_each_is_told_its_own_order_in_the_order_of_asking(world: World) -> None:
    for worker in ("a", "b", "c"):
        await world.worker(worker)
    await world.ledger.order(ORGANIZATION, "b", PAUSE, "bob")
    await world.ledger.order(ORGANIZATION, "c", DRAIN, "bob")
    asked = ["c", "a", "nobody", "b", "a"]
    assert await world.ledger.orders(asked) == [DRAIN, WORK, REVOKE, PAUSE, WORK]
    assert await world.ledger.seen(asked) == [DRAIN, WORK, REVOKE, PAUSE, WORK]
    assert await world.ledger.seen([]) == []
    assert await world.ledger.orders([]) == []


async def test_one_that_has_left_is_not_brought_back(world: World) -> None:
    await world.worker("a")
    await world.ledger.leave("a")
    with world.unchanged():
        assert await world.ledger.seen(["a", "nobody"]) == [REVOKE, REVOKE]


async def test_asking_for_orders_is_no_sign_of_life(world: World) -> None:
    await world.worker("a")
    world.advance(30)
    with world.unchanged():
        await world.ledger.orders(["a"])


async def test_a_worker_that_tells_no_capacity_keeps_what_it_has_and_gets_nothing_more(world: World) -> None:
    await world.worker("leaving", capacity=3)
    await world.submit_all([world.task() for _ in range(4)])
    (lease, _) = await world.claim(2, "leaving")
    await world.worker("leaving", capacity=0)
    assert await world.claim(1, "leaving") == []
    await world.finish(lease)
    assert await world.claim(1, "leaving") == []


async def test_capacity_stays_as_the_worker_said_it(world: World) -> None:
    await world.worker("a")
    await world.ledger.heartbeat("a", 3)
    await world.ledger.seen(["a"])
    [capacity] = [worker.capacity for worker in await world.views.workers(ORGANIZATION, None) if worker.id == "a"]
    assert capacity == 3
