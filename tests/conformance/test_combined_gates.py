"""Tasks with limits of several sorts: whatever happens to them, nobody waits for somebody who waits for him."""

import random
from itertools import pairwise

import pytest

from conformance.making import DONE, FAILED, World, retry_in, us
from conformance.test_gates import options, submit_many
from perdure.domain.gate import ORDER_OF_GATES, Gate, GateSort, in_order
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.store.wakeups import Topic

S = TaskState
FAIR = Gate(GateSort.FAIR, "work by customer (default, 4)", '"acme"', 1)
ONE = Gate(GateSort.CONCURRENCY, "work by account", '"acme"', 1)
OFTEN = Gate(GateSort.RATE, "work", "", 100, us(1))


@pytest.mark.parametrize("how", ["handed back", "lost"])
async def test_who_keeps_a_slot_does_not_wait_for_a_turn_behind_who_waits_for_that_slot(world: World, how: str) -> None:
    first = await world.submit(options=options(FAIR, ONE, OFTEN))
    await world.worker(capacity=10)
    lease = await world.claim_one()
    second = await world.submit(options=options(FAIR, ONE, OFTEN))
    assert await world.state(second) is S.PENDING
    if how == "lost":
        world.advance(300)
        await world.sweep(charged=False)
    else:
        await world.finish(lease, settlement=Settlement.handed_back())
    again = await world.claim_one()
    assert again.hold.task_id == first
    await world.finish(again)
    await world.finish(await world.claim_one())
    assert await world.state(second) is S.SUCCEEDED


async def test_a_start_at_a_rate_wakes_who_lets_the_next_ones_in(world: World) -> None:
    await submit_many(world, 2, options=options(OFTEN._replace(slots=1)))
    await world.worker()
    hints = world.store.wakeups.subscribe(Topic.DUE)
    await world.claim_one()
    assert Topic.DUE in await hints.wait(10)
    hints.close()


def drawn(chance: random.Random) -> str:
    """Some of the gates that there are; many tasks meet at each."""
    pair = chance.choice("ab")
    gates = [
        Gate(GateSort.ORDER, "work by account", pair, 1),
        Gate(GateSort.FAIR, "work by customer (default, 4)", chance.choice("ab"), 1),
        Gate(GateSort.CONCURRENCY, "work", "", 3),
        Gate(GateSort.CONCURRENCY, "work by account", pair, 2),
        Gate(GateSort.RATE, "work", "", 3, us(4)),
        Gate(GateSort.RATE, "work by account", pair, 1, us(1)),
    ]
    return options(*in_order(chance.sample(gates, chance.randint(1, 4))))


@pytest.mark.parametrize("seed", [0, 2])
async def test_whatever_happens_all_end(world: World, seed: int) -> None:
    chance = random.Random(seed)
    ids: list[str] = []
    await world.worker(capacity=1000)
    for _ in range(40):
        ids += [await world.submit(options=drawn(chance), max_attempts=1000) for _ in range(chance.randint(0, 3))]
        for lease in await world.claim(chance.randint(1, 4)):
            outcome = chance.choice(
                [DONE, FAILED, retry_in(3), Settlement.handed_back(), Settlement.snoozed(us(2)), None]
            )
            if outcome is not None:
                await world.settle(lease, outcome)
        if ids and chance.random() < 0.2:
            await world.cancel(chance.choice(ids))
        world.advance(chance.uniform(0.2, 12))
        await world.ledger.promote(100)
        await world.sweep(charged=False)
        look(world)
    for _ in range(400):
        for lease in await world.claim(50):
            await world.settle(lease, DONE)
        world.advance(5)
        await world.ledger.promote(100)
        await world.sweep(charged=False)
        if not world.snapshot()["live"]:
            break
    else:
        raise AssertionError(world.snapshot()["live"])
    world.advance(60)
    await world.ledger.promote(100)
    assert world.snapshot()["slots"] == []


def look(world: World) -> None:
    """Nobody waits at a gate who has a slot at a later one: so the waits have an order, and no circle."""
    rows = world.snapshot()
    sorts = {row["gate"]: ORDER_OF_GATES.index(GateSort(row["sort"])) for row in rows["gates"]}
    for live in rows["live"]:
        if live["gate"] is None:
            continue
        kept = [sorts[slot["gate"]] for slot in rows["slots"] if slot["n"] == live["n"] and slot["free_us"] is None]
        assert all(early <= late for early, late in pairwise([*sorted(kept), sorts[live["gate"]]])), (live, kept)
