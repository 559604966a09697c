"""Breakers beside others: what is counted of one kind in one organization opens, closes and limits no other."""

from typing import Any

import pytest

from conformance.making import DONE, KIND, ORGANIZATION, World, retry_in, us
from conformance.test_breakers import BAD, declare, end, finish, standing, submit_many
from conformance.test_neighbours import put
from perdure.domain.breaker import BreakerState
from perdure.domain.retention import Retention
from perdure.domain.why import ObstacleSort
from perdure.store.views import BreakerView

OTHERS = (("aaa", KIND), (ORGANIZATION, "aaa"), (ORGANIZATION, "zzz"), ("zzz", KIND))
"""The same kind in organizations, and kinds of this one: before and after it by their names."""


async def others(world: World, **breaker: Any) -> None:
    """Breakers of others, and one of the usual kind."""
    for organization, kind in OTHERS:
        await declare(world, kind, organization, **breaker)
    await declare(world)
    await submit_many(world, 10)


async def trip_others(world: World, seconds: float) -> None:
    for organization, kind in OTHERS:
        await world.ledger.trip_breaker(organization, kind, us(seconds), "eve")


async def mine(world: World) -> BreakerView:
    (view,) = [each for each in await world.views.breakers(ORGANIZATION) if each.kind == KIND]
    return view


async def test_failures_of_different_moments_of_one_window_add_up(world: World) -> None:
    await declare(world)
    await submit_many(world, 10)
    await end(world, BAD)
    world.advance(20)
    (answer,) = await end(world, BAD)
    assert answer.turned is not None
    assert (await standing(world)).state is BreakerState.OPEN


async def test_after_a_reset_only_its_window_is_looked_at_too(world: World) -> None:
    await declare(world)
    await submit_many(world, 10)
    await world.ledger.reset_breaker(ORGANIZATION, KIND, "bob")
    world.advance(1)
    await end(world, BAD)
    world.advance(70)
    await end(world, BAD)
    assert ((await standing(world)).state, (await standing(world)).attempts) == (BreakerState.CLOSED, 1)


@pytest.mark.parametrize("open_for", [3_600, 5])
async def test_open_and_half_open_breakers_of_others_change_nothing_here(world: World, open_for: int) -> None:
    await others(world)
    await trip_others(world, open_for)
    world.advance(6)
    (answer,) = await end(world, BAD)
    assert answer.turned is None
    view = await mine(world)
    assert (view.state, view.attempts, view.failures, view.trips) == (BreakerState.CLOSED, 1, 1, 0)
    world.advance(70)
    (answer,) = await end(world, BAD)
    assert answer.turned is None, "the first failure is out of the window"
    assert (await mine(world)).state is BreakerState.CLOSED


async def test_failures_of_others_do_not_add_up_with_those_here(world: World) -> None:
    await others(world)
    await world.worker(kinds=(KIND, "aaa", "zzz"))
    for organization, kind in OTHERS:
        await submit_many(world, 1, organization=organization, kind=kind, priority=9)
    answers = await finish(world, *await world.claim(4), settlement=retry_in(3_000))
    world.advance(20)
    answers += await end(world, BAD)
    assert [each.turned for each in answers] == [None] * 5
    views = [*await world.views.breakers(ORGANIZATION), *await world.views.breakers("aaa")]
    assert {(each.state, each.failures) for each in views} == {(BreakerState.CLOSED, 1)}


@pytest.mark.parametrize("beside", OTHERS, ids=str)
async def test_in_one_call_each_kind_is_judged_by_its_own_window(world: World, beside: tuple[str, str]) -> None:
    organization, kind = beside
    await declare(world, window=600)
    await declare(world, kind, organization, window=10)
    await world.worker(kinds=(KIND, kind))
    await submit_many(world, 3)
    await end(world, BAD)
    world.advance(60)
    await submit_many(world, 1, organization=organization, kind=kind, priority=9)
    leases = await world.claim(2)
    assert {(lease.hold.organization, lease.kind) for lease in leases} == {(ORGANIZATION, KIND), beside}
    answers = await finish(world, *leases, settlement=BAD)
    turned = {(each.turned.organization, each.turned.kind) for each in answers if each.turned is not None}
    assert turned == {(ORGANIZATION, KIND)}


async def test_what_other_documents_say_of_probes_is_nothing_here(world: World) -> None:
    await others(world, probes=1)
    await put(world, "queue", KIND, breaker={"failures": 1, "probes": 1, "open_for": 1})
    await declare(world, probes=3)
    await world.ledger.trip_breaker(ORGANIZATION, KIND, us(5), "bob")
    world.advance(5)
    assert len(await world.claim(2)) == 2
    waiting = await world.submit(priority=9)
    assert await world.views.why(ORGANIZATION, waiting) == []
    assert len(await world.claim(10)) == 1


async def test_a_kind_that_lost_its_breaker_is_not_blocked_by_it(world: World) -> None:
    await others(world)
    await world.ledger.trip_breaker(ORGANIZATION, KIND, us(600), "bob")
    await trip_others(world, 600)
    task_id = await world.submit(priority=9)
    assert [each.sort for each in await world.views.why(ORGANIZATION, task_id)] == [ObstacleSort.BREAKER]
    await put(world, "kind", KIND, kind=KIND)
    assert await world.views.why(ORGANIZATION, task_id) == []
    assert len(await world.claim(1)) == 1


async def test_the_next_probe_is_told_by_those_of_this_opening(world: World) -> None:
    await declare(world, open_for=3_600)
    await submit_many(world, 10)
    await world.ledger.trip_breaker(ORGANIZATION, KIND, us(5), "bob")
    world.advance(5)
    assert len(await world.claim(5)) == 1
    await world.ledger.trip_breaker(ORGANIZATION, KIND, us(5), "bob")
    world.advance(5)
    assert len(await world.claim(5)) == 1
    waiting = await world.submit(priority=9)
    (told,) = await world.views.why(ORGANIZATION, waiting)
    assert (told.sort, told.until_us) == (ObstacleSort.BREAKER, await world.now_us() + us(3_600))


async def test_outcomes_go_when_nobody_looks_at_them_whatever_breakers_of_others_wait_for(world: World) -> None:
    await others(world)
    await trip_others(world, 5)
    await end(world, retry_in(0), DONE)
    world.advance(3 * 3_600)
    await world.ledger.retain(Retention(10**15), 100)
    assert world.snapshot()["outcomes"] == []


async def test_outcomes_of_before_go_while_its_probes_are_kept(world: World) -> None:
    await declare(world, probes=2)
    await submit_many(world, 10)
    await end(world, DONE)
    await world.ledger.trip_breaker(ORGANIZATION, KIND, us(5), "bob")
    world.advance(5)
    await end(world, DONE)
    assert len(world.snapshot()["outcomes"]) == 2
    world.advance(3 * 3_600)
    await world.ledger.retain(Retention(10**15), 100)
    assert [each["attempts"] for each in world.snapshot()["outcomes"]] == [1]
    (answer,) = await end(world, DONE)
    assert answer.turned is not None
    assert (await standing(world)).state is BreakerState.CLOSED
    world.advance(60)
    await end(world, DONE)
    world.advance(3 * 3_600)
    await world.ledger.retain(Retention(10**15), 100)
    assert world.snapshot()["outcomes"] == [], "a breaker that is closed waits for nothing"
