"""Limits of queues and organizations, and pauses: held where lanes are chosen, for all workers together."""

import json
import random
from collections import Counter
from typing import Any

import pytest

from conformance.making import DONE, KIND, ORGANIZATION, QUEUE, World, retry_in
from perdure.domain.attempt import Lease
from perdure.domain.limits import SECOND_US
from perdure.domain.states import TaskState
from perdure.store.definitions import DefinitionType

HOLDERS = [("queue", QUEUE), ("organization", ORGANIZATION)]
BOTH = pytest.mark.parametrize(("type", "name"), HOLDERS, ids=["queue", "organization"])


async def say(world: World, type: DefinitionType, name: str, organization: str = ORGANIZATION, **document: Any) -> None:
    """Store a document."""
    await world.definitions.put(organization, type, name, json.dumps(document), "bob")


async def submit_many(world: World, count: int, **given: object) -> None:
    """Submit that many tasks."""
    await world.submit_all([world.task(**given) for _ in range(count)])


@BOTH
async def test_no_more_are_held_at_once_than_the_concurrency(world: World, type: DefinitionType, name: str) -> None:
    await say(world, type, name, concurrency=3)
    await submit_many(world, 10)
    for each in ("w", "v"):
        await world.worker(each)
    held = await world.claim(2) + await world.claim(5, "v")
    assert len(held) == 3
    assert await world.claim(5) == []
    await world.finish(held[0])
    assert len(await world.claim(5, "v")) == 1


@pytest.mark.parametrize("settlement", [DONE, retry_in(60)], ids=["succeeded", "retrying"])
async def test_whatever_ends_an_attempt_makes_room(world: World, settlement: Any) -> None:
    await say(world, "queue", QUEUE, concurrency=1)
    await submit_many(world, 2)
    await world.worker()
    await world.finish(await world.claim_one(), settlement=settlement)
    assert len(await world.claim(5)) == 1


async def test_a_lost_worker_keeps_no_room(world: World) -> None:
    await say(world, "queue", QUEUE, concurrency=1)
    await submit_many(world, 2, on_loss="fail")
    await world.worker()
    await world.claim_one()
    world.advance(61)
    await world.sweep()
    assert len(await world.claim(5)) == 1


async def test_what_is_being_cancelled_still_counts(world: World) -> None:
    await say(world, "queue", QUEUE, concurrency=1)
    await submit_many(world, 2)
    await world.worker()
    lease = await world.claim_one()
    await world.cancel(lease.hold.task_id)
    assert await world.claim(5) == []
    await world.finish(lease)
    assert len(await world.claim(5)) == 1


async def test_a_limit_of_one_queue_leaves_others_alone(world: World) -> None:
    await say(world, "queue", "narrow", concurrency=1)
    await world.worker(queues=("narrow", "wide"))
    await submit_many(world, 5, queue="narrow")
    await submit_many(world, 5, queue="wide")
    await submit_many(world, 5, queue="narrow", organization="elsewhere")
    leases = await world.claim(15)
    assert Counter((lease.hold.organization, lease.queue) for lease in leases) == {
        (ORGANIZATION, "narrow"): 1,
        (ORGANIZATION, "wide"): 5,
        ("elsewhere", "narrow"): 5,
    }


async def test_a_limit_of_an_organization_is_for_all_of_its_queues_together(world: World) -> None:
    await say(world, "organization", ORGANIZATION, concurrency=3)
    await say(world, "queue", "x", concurrency=1)
    await world.worker(queues=("x", "y"))
    for queue in ("x", "y", "x", "y", "x", "y"):
        await world.submit(queue=queue)
    assert Counter(lease.queue for lease in await world.claim(6)) == {"x": 1, "y": 2}


async def test_what_is_over_a_limit_lets_the_less_urgent_pass(world: World) -> None:
    await say(world, "queue", "narrow", concurrency=1)
    await world.worker(queues=("narrow", "wide"))
    await submit_many(world, 3, queue="narrow", priority=9)
    await submit_many(world, 3, queue="wide", priority=1)
    assert [lease.queue for lease in await world.claim(3)] == ["narrow", "wide", "wide"]


@BOTH
async def test_no_more_start_than_the_rate_in_any_window(world: World, type: DefinitionType, name: str) -> None:
    await say(world, type, name, rate=5, per=10)
    await submit_many(world, 60)
    await world.worker()
    randomness, starts, now = random.Random(5), [], 0.0
    while now < 80:
        leases = await world.claim(randomness.choice((1, 2, 9)))
        starts += [now] * len(leases)
        step = randomness.choice((0.5, 1.0, 3.0))
        world.advance(step)
        now += step
        await world.ledger.promote(100)
    assert len(starts) >= 35, "and the rate is used"
    for first in starts:
        assert sum(first <= each < first + 10 for each in starts) <= 5


async def test_a_retry_counts_against_the_rate_like_any_start(world: World) -> None:
    await say(world, "queue", QUEUE, rate=2, per=60)
    await world.submit()
    await world.worker()
    for _ in range(2):
        await world.finish(await world.claim_one(), settlement=retry_in(1))
        world.advance(1)
        await world.ledger.promote(100)
    assert await world.claim(1) == []
    world.advance(60)
    assert len(await world.claim(1)) == 1


async def test_a_task_that_is_handed_back_at_once_spends_another_start(world: World) -> None:
    from perdure.domain.settlement import Settlement

    await say(world, "queue", QUEUE, rate=2, per=60)
    await world.submit()
    await world.worker()
    for _ in range(2):
        await world.finish(await world.claim_one(), settlement=Settlement.handed_back())
    assert await world.claim(1) == []


async def test_the_end_of_a_window_is_told_of_in_time(world: World) -> None:
    await say(world, "queue", QUEUE, rate=1, per=30)
    await submit_many(world, 2)
    await world.worker()
    await world.claim(1)
    swept = await world.ledger.promote(100)
    assert swept.next_us == await world.now_us() + 30 * SECOND_US


async def test_a_limit_that_is_lifted_holds_no_more(world: World) -> None:
    await say(world, "queue", QUEUE, concurrency=1, rate=1, per=3600)
    await submit_many(world, 5)
    await world.worker()
    assert len(await world.claim(5)) == 1
    await say(world, "queue", QUEUE, concurrency=3, rate=None, per=None)
    assert len(await world.claim(5)) == 2
    await say(world, "queue", QUEUE)
    assert len(await world.claim(5)) == 2


async def test_a_paused_kind_gives_nothing_until_it_is_resumed(world: World) -> None:
    await world.worker(kinds=(KIND, "other"))
    await submit_many(world, 2)
    other = await world.submit(kind="other")
    await say(world, "kind", KIND, kind=KIND, paused=True)
    assert [lease.hold.task_id for lease in await world.claim(5)] == [other]
    await say(world, "kind", KIND, kind=KIND)
    assert len(await world.claim(5)) == 2


async def test_a_repeated_claim_is_answered_over_a_limit_too(world: World) -> None:
    from perdure.store.ledger import ClaimRequest

    await say(world, "queue", QUEUE, concurrency=2)
    await submit_many(world, 5)
    await world.worker()
    request = ClaimRequest("w", world.leases(2))
    first = await world.ledger.claim(request)
    assert [lease.hold for lease in await world.ledger.claim(request)] == [lease.hold for lease in first]
    assert await world.claim(5) == []


async def test_limits_hold_whatever_happens(world: World) -> None:
    """A random life of four workers: never more held than the limits say, and never fewer where tasks wait."""
    randomness = random.Random(11)
    await say(world, "queue", "x", concurrency=3)
    await say(world, "organization", ORGANIZATION, concurrency=7)
    for name in ("a", "b", "c", "d"):
        await world.worker(name, queues=("x", "y"))
    for _ in range(60):
        await world.submit(queue=randomness.choice("xxy"), priority=randomness.choice((4, 4, 9)))
    held: list[Lease] = []
    for _ in range(150):
        held += await world.claim(randomness.choice((1, 2, 5)), randomness.choice("abcd"))
        assert sum(lease.queue == "x" for lease in held) <= 3
        assert len(held) <= 7
        if held and randomness.random() < 0.7:
            lease = held.pop(randomness.randrange(len(held)))
            await world.finish(lease, settlement=randomness.choice((DONE, DONE, retry_in(1))))
        world.advance(1)
        await world.ledger.promote(100)
    while held := held + await world.claim(100, "a"):
        await world.finish(held.pop())
        world.advance(1)
        await world.ledger.promote(100)
    counts = (await world.views.overview(ORGANIZATION)).counts
    assert all(row.tasks == 0 for row in counts if row.state is TaskState.QUEUED)
