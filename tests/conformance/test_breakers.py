"""Breakers of kinds: outcomes are counted as attempts end, and claims pass by kinds whose breaker is open."""

import json
from typing import Any

import pytest

from conformance.making import BOOM, DONE, FAILED, KIND, ORGANIZATION, World, retry_in, settling
from perdure.domain.attempt import Lease
from perdure.domain.breaker import BreakerEvent, BreakerState
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason
from perdure.store.ledger import Settled
from perdure.store.views import BreakerView

BAD = retry_in(0)
BAD_PAYLOAD = Settlement.failed(BOOM, Reason.BAD_PAYLOAD, dead_letters=False)


async def declare(world: World, kind: str = KIND, organization: str = ORGANIZATION, **breaker: Any) -> None:
    """Give a kind a breaker."""
    said = {"share": None, "failures": 2, "window": 60, "min_attempts": 2, "open_for": 30, "probes": 1, **breaker}
    await world.definitions.put(organization, "kind", kind, json.dumps({"kind": kind, "breaker": said}), "bob")


async def submit_many(world: World, count: int, **given: Any) -> None:
    """Submit that many tasks that may fail often."""
    await world.submit_all([world.task(max_attempts=100, **given) for _ in range(count)])


async def finish(world: World, *leases: Lease, settlement: Settlement = DONE) -> list[Settled]:
    """Settle attempts in one call."""
    return await world.ledger.settle([settling(lease, settlement) for lease in leases])


async def end(world: World, *settlements: Settlement, worker: str = "w") -> list[Settled]:
    """Claim and settle one after the other."""
    answers: list[Settled] = []
    for settlement in settlements:
        answers += await finish(world, await world.claim_one(worker), settlement=settlement)
    return answers


async def standing(world: World) -> BreakerView:
    """How the breaker stands."""
    (view,) = await world.views.breakers(ORGANIZATION)
    return view


async def opened(world: World, **breaker: Any) -> None:
    """A worker, tasks that wait, and a breaker that is open."""
    await declare(world, **breaker)
    await world.worker()
    await submit_many(world, 30)
    await end(world, BAD, BAD)
    assert (await standing(world)).state is BreakerState.OPEN


async def test_a_kind_that_fails_too_often_is_not_claimed_until_its_time(world: World) -> None:
    await opened(world)
    assert await world.claim(5) == []
    view = await standing(world)
    assert view.until_us == await world.now_us() + 30_000_000
    assert (view.trips, view.last_event, view.last_attempts, view.last_failures, view.actor) == (
        1,
        BreakerEvent.TOO_MANY_FAILED,
        2,
        2,
        "system",
    )
    world.advance(29)
    assert await world.claim(5) == []
    world.advance(1)
    assert (await standing(world)).state is BreakerState.HALF_OPEN
    assert len(await world.claim(5)) == 1


async def test_the_answer_of_the_settlement_that_turns_it_tells_so(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    first, second = await end(world, BAD, BAD)
    assert first.turned is None
    assert (second.turned.kind, second.turned.state, second.turned.counted) == (KIND, BreakerState.OPEN, (2, 2))


async def test_other_kinds_and_organizations_are_claimed_all_the_same(world: World) -> None:
    await opened(world)
    await world.worker("v", kinds=(KIND, "other"))
    await world.submit(kind="other")
    await world.submit(organization="elsewhere")
    assert {(lease.kind, lease.hold.organization) for lease in await world.claim(10, "v")} == {
        ("other", ORGANIZATION),
        (KIND, "elsewhere"),
    }


async def test_a_share_needs_enough_attempts(world: World) -> None:
    await declare(world, share=0.5, failures=None, min_attempts=6)
    await world.worker()
    await submit_many(world, 30)
    await end(world, BAD, BAD, BAD, DONE, DONE)
    assert (await standing(world)).state is BreakerState.CLOSED
    await end(world, DONE)
    # Three of six failed, but the last one did not: only a failure opens it.
    assert await world.claim(1)
    await end(world, BAD)
    assert (await standing(world)).state is BreakerState.OPEN


async def test_what_failed_before_the_window_is_forgotten(world: World) -> None:
    await declare(world, failures=3)
    await world.worker()
    await submit_many(world, 10)
    await end(world, BAD, BAD)
    world.advance(61)
    await end(world, BAD, BAD)
    view = await standing(world)
    assert (view.state, view.attempts, view.failures) == (BreakerState.CLOSED, 2, 2)
    await end(world, BAD)
    assert (await standing(world)).state is BreakerState.OPEN


async def test_many_settled_together_count_as_many(world: World) -> None:
    await declare(world, failures=3)
    await world.worker()
    await submit_many(world, 5)
    leases = await world.claim(3)
    answers = await finish(world, *leases, settlement=BAD)
    assert [answer.turned is not None for answer in answers] == [False, False, True]
    assert await world.claim(1) == []


@pytest.mark.parametrize("settlement", [Settlement.snoozed(0), Settlement.handed_back(), BAD_PAYLOAD], ids=repr)
async def test_what_tells_nothing_is_not_counted(world: World, settlement: Settlement) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    await end(world, settlement, settlement, settlement)
    view = await standing(world)
    assert (view.state, view.attempts) == (BreakerState.CLOSED, 0)


async def test_a_cancelled_attempt_is_not_counted(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    for _ in range(3):
        lease = await world.claim_one()
        await world.cancel(lease.hold.task_id)
        await finish(world, lease, settlement=BAD)
    assert (await standing(world)).attempts == 0


async def test_lost_attempts_are_failures(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    await world.claim(2)
    world.advance(61)
    await world.sweep()
    view = await standing(world)
    assert (view.state, view.last_failures) == (BreakerState.OPEN, 2)
    assert await world.claim(5) == []


async def test_a_repeat_of_a_settlement_counts_nothing(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    lease = await world.claim_one()
    for _ in range(3):
        await finish(world, lease, settlement=BAD)
    assert (await standing(world)).failures == 1


async def test_probes_that_succeed_close_it(world: World) -> None:
    await opened(world, probes=2)
    world.advance(30)
    probes = await world.claim(5)
    assert len(probes) == 2
    (first,) = await finish(world, probes[0])
    assert first.turned is None
    assert await world.claim(5) == []
    (second,) = await finish(world, probes[1])
    assert second.turned.state is BreakerState.CLOSED
    view = await standing(world)
    assert (view.state, view.until_us, view.trips) == (BreakerState.CLOSED, None, 1)
    assert len(await world.claim(5)) == 5


async def test_a_probe_that_fails_opens_it_again(world: World) -> None:
    await opened(world)
    world.advance(30)
    (answer,) = await end(world, BAD)
    assert answer.turned.event is BreakerEvent.PROBE_FAILED
    assert await world.claim(5) == []
    view = await standing(world)
    assert (view.state, view.trips, view.until_us) == (BreakerState.OPEN, 2, await world.now_us() + 30_000_000)
    world.advance(30)
    assert len(await world.claim(5)) == 1


async def test_a_probe_whose_worker_dies_opens_it_again(world: World) -> None:
    await opened(world)
    world.advance(30)
    assert len(await world.claim(5)) == 1
    world.advance(61)
    await world.sweep()
    assert (await standing(world)).last_event is BreakerEvent.PROBE_FAILED


async def test_probes_that_tell_nothing_make_way_for_others(world: World) -> None:
    await opened(world)
    world.advance(30)
    await end(world, Settlement.handed_back())
    assert await world.claim(5) == []
    world.advance(30)
    assert len(await world.claim(5)) == 1


async def test_what_began_before_it_opened_is_no_probe(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 20)
    slow: list[Lease] = await world.claim(4)
    await end(world, BAD, BAD)
    await finish(world, slow[0], settlement=BAD)
    world.advance(31)
    await finish(world, slow[1])
    await finish(world, slow[2], settlement=BAD)
    view = await standing(world)
    assert (view.state, view.attempts, view.trips) == (BreakerState.HALF_OPEN, 0, 1)
    await end(world, DONE)
    await finish(world, slow[3], settlement=FAILED)
    view = await standing(world)
    assert (view.state, view.attempts) == (BreakerState.CLOSED, 0)


async def test_it_is_opened_and_closed_by_hand(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    turn = await world.ledger.trip_breaker(ORGANIZATION, KIND, 5_000_000, "bob")
    assert (turn.state, turn.until_us) == (BreakerState.OPEN, await world.now_us() + 5_000_000)
    assert await world.claim(5) == []
    turn = await world.ledger.reset_breaker(ORGANIZATION, KIND, "bob")
    assert (turn.state, turn.until_us) == (BreakerState.CLOSED, None)
    assert len(await world.claim(5)) == 5
    view = await standing(world)
    assert (view.actor, view.last_event, view.trips) == ("bob", BreakerEvent.RESET, 1)


async def test_probes_that_were_spent_before_it_was_opened_again_are_nothing_to_those_after(world: World) -> None:
    await opened(world, open_for=3600)
    world.advance(3600)
    await end(world, Settlement.handed_back())
    assert await world.claim(5) == []
    await world.ledger.trip_breaker(ORGANIZATION, KIND, 5_000_000, "bob")
    world.advance(5)
    assert len(await world.claim(5)) == 1


async def test_a_reset_begins_a_new_count(world: World) -> None:
    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    await end(world, BAD)
    await world.ledger.reset_breaker(ORGANIZATION, KIND, "bob")
    await end(world, BAD)
    view = await standing(world)
    assert (view.state, view.failures) == (BreakerState.CLOSED, 1)


async def test_a_kind_that_has_no_breaker_any_more_is_claimed_and_not_counted(world: World) -> None:
    await opened(world)
    await world.definitions.put(ORGANIZATION, "kind", KIND, json.dumps({"kind": KIND}), "bob")
    assert len(await world.claim(1)) == 1
    await end(world, BAD, BAD)
    assert await world.views.breakers(ORGANIZATION) == []


async def test_kinds_without_a_breaker_write_nothing_of_it(world: World) -> None:
    await world.worker()
    await submit_many(world, 5)
    await end(world, BAD, BAD, DONE)
    await declare(world, kind="other")
    (view,) = await world.views.breakers(ORGANIZATION)
    assert (view.kind, view.state, view.attempts, view.trips, view.since_us) == (
        "other",
        BreakerState.CLOSED,
        0,
        0,
        None,
    )


async def test_the_duty_of_what_is_due_tells_workers_when_its_time_has_come(world: World) -> None:
    await opened(world)
    await world.ledger.promote(100)
    swept = await world.ledger.promote(100)
    until_us = await world.now_us() + 30_000_000
    assert (swept.moved, swept.next_us) == (0, until_us)
    world.advance(30)
    swept = await world.ledger.promote(100)
    assert (swept.moved, swept.next_us) == (1, None)


async def test_outcomes_are_removed_once_no_window_looks_at_them(world: World) -> None:
    from perdure.domain.retention import Retention

    await declare(world)
    await world.worker()
    await submit_many(world, 5)
    await end(world, BAD, DONE)
    keep = Retention(10**15)
    await world.ledger.retain(keep, 100)
    assert (await standing(world)).attempts == 2
    world.advance(7201)
    await world.ledger.retain(keep, 100)
    snapshot = world.snapshot()
    assert not [name for name in snapshot if "outcomes" in name and snapshot[name]]


async def test_probes_that_come_hours_apart_close_it_all_the_same(world: World) -> None:
    from perdure.domain.retention import Retention

    await opened(world, probes=2)
    world.advance(30)
    await end(world, DONE)
    world.advance(3 * 3600)
    await world.ledger.retain(Retention(10**15), 100)
    (second,) = await end(world, DONE)
    assert second.turned.event is BreakerEvent.PROBES_PASSED
    world.advance(3 * 3600)
    await world.ledger.retain(Retention(10**15), 100)
    snapshot = world.snapshot()
    assert not [name for name in snapshot if "outcomes" in name and snapshot[name]]
