"""Turns and slots beside others: gates of the same names elsewhere, several of one call, lanes that are used again."""

import pytest

from conformance.families import held
from conformance.making import DONE, FAILED, HOUR, KIND, ORGANIZATION, QUEUE, World, retry_in, settling, us
from conformance.test_breakers import BAD, declare, end
from conformance.test_gates import at_rate, by_customer, in_order, options, submit_many
from conformance.test_gates_beside import ELSEWHERE, twins
from conformance.test_idle_lanes import DAY, KINDS, lanes, live_through, retain
from conformance.test_neighbours import put
from conformance.test_queue_limits import say
from perdure.domain.gate import Gate, GateSort, WhenFull
from perdure.domain.retention import Retention
from perdure.domain.states import TaskState
from perdure.errors import Invalid
from perdure.store.ledger import Submitted

S = TaskState
TURNS = options(Gate(GateSort.FAIR, "work by customer (default, 4)", '"acme"', 1))


# Gates


async def test_a_start_gives_no_turn_back_that_a_task_of_the_same_id_has_elsewhere(world: World) -> None:
    id, _ = await twins(world, TURNS)
    (answer,) = await world.submit_all([world.task(organization=ELSEWHERE, options=TURNS)])
    assert isinstance(answer, Submitted)
    assert (await world.claim_one()).hold.task_id == id
    assert (await world.look(answer.id, ELSEWHERE)).state is S.PENDING
    assert (await world.claim_one("away")).hold.task_id == id
    assert (await world.look(answer.id, ELSEWHERE)).state is S.QUEUED


async def test_a_start_spends_one_start_though_a_task_of_the_same_id_is_elsewhere(world: World) -> None:
    await world.worker(organizations=(ORGANIZATION,))
    await say(world, "queue", QUEUE, rate=2, per=60)
    id = await world.submit()
    await world.submit_all([world.task(id=id, organization=ELSEWHERE)])
    assert len(await world.claim(1)) == 1
    await submit_many(world, 3)
    assert len(await world.claim(5)) == 1


async def test_as_many_join_as_there_is_room_for_whoever_waits_at_other_gates(world: World) -> None:
    mine, others = by_customer(3), by_customer(3, '"other"')
    ids = await submit_many(world, 3, options=mine)
    beside = await submit_many(world, 3, options=others)
    waiting: list[str] = []
    for _ in range(3):
        waiting += await submit_many(world, 1, options=mine)
        beside += await submit_many(world, 2, options=others)
    leases = [lease for lease in await world.claim(10) if lease.hold.task_id in ids]
    assert len(leases) == 3
    await world.finish(*leases)
    assert [await world.state(each) for each in waiting] == [S.QUEUED] * 3
    assert [await world.state(each) for each in beside[3:]] == [S.PENDING] * 6


async def test_ends_and_retries_of_one_call_leave_their_gates_each_in_its_way(world: World) -> None:
    first, second = await submit_many(world, 2, options=in_order())
    retried, third = await submit_many(world, 2, options=in_order('"other"'))
    limited, fourth = await submit_many(world, 2, options=by_customer(1, '"third"'))
    leases = {lease.hold.task_id: lease for lease in await world.claim(10)}
    assert set(leases) == {first, retried, limited}
    await world.ledger.settle(
        [
            settling(leases[first], DONE),
            settling(leases[retried], retry_in(60)),
            settling(leases[limited], retry_in(60)),
        ]
    )
    # Who ended makes way; of those that go on later, a limit's does and an order's keeps its turn.
    assert await world.state(second) is S.QUEUED
    assert await world.state(third) is S.PENDING
    assert await world.state(fourth) is S.QUEUED


async def test_what_is_refused_at_a_full_gate_is_told_its_own_end(world: World) -> None:
    for settlement in (DONE, FAILED):
        await world.submit()
        await world.finish(await world.claim_one(), settlement=settlement)
    newest = by_customer(1, when_full=WhenFull.CANCEL_NEWEST)
    await world.submit(options=newest)
    (answer,) = await world.submit_all([world.task(options=newest)])
    assert isinstance(answer, Submitted)
    assert answer.state is S.CANCELLED


async def test_a_delayed_child_comes_to_its_gate_when_it_is_due_and_not_with_its_parents_end(world: World) -> None:
    family = await world.submit_job(
        {"above": [], "below": ["above"]}, tasks={"below": {"options": by_customer(1), "delay": 30}}
    )
    (lease,) = await held(world, family, "above")
    await world.finish(lease)
    beside = await world.submit(options=by_customer(1))
    assert await world.state(beside) is S.QUEUED
    world.advance(30)
    await world.ledger.promote(10)
    assert await world.state(family["below"]) is S.PENDING
    assert (await world.ledger.promote(10)).moved == 0, "what waits at a gate is not due again"
    await world.finish(await world.claim_one())
    assert await world.state(family["below"]) is S.QUEUED


async def test_of_two_children_only_the_one_that_is_due_comes_to_its_gate(world: World) -> None:
    given = {"late": {"options": by_customer(1), "delay": 30}, "now": {"options": by_customer(1)}}
    family = await world.submit_job({"above": [], "late": ["above"], "now": ["above"]}, tasks=given)
    (lease,) = await held(world, family, "above")
    await world.finish(lease)
    states = await world.states(family)
    assert (states["late"], states["now"]) == (S.PENDING, S.QUEUED)
    await world.finish(await world.claim_one())
    world.advance(30)
    await world.ledger.promote(10)
    assert (await world.states(family))["late"] is S.QUEUED


async def test_another_parents_end_does_not_send_a_child_to_the_end_of_the_line_at_its_gate(world: World) -> None:
    fair = Gate(GateSort.FAIR, "work by customer (default, 4)", '"acme"', 1)
    both = options(Gate(GateSort.CONCURRENCY, "work by customer", '"acme"', 1), fair)
    holder = await world.submit(options=both)
    family = await world.submit_job(
        {"p": [], "q": [], "child": ["p", "q"]}, tasks={"child": {"options": both, "trigger": "any_succeeded"}}
    )
    leases = {lease.hold.task_id: lease for lease in await world.claim(5)}
    await world.finish(leases[family["p"]])
    world.advance(1)
    later = await world.submit(options=both)
    world.advance(1)
    await world.finish(leases[family["q"]])
    assert [await world.state(each) for each in (family["child"], later)] == [S.PENDING] * 2
    await world.finish(leases[holder])
    assert [await world.state(each) for each in (family["child"], later)] == [S.QUEUED, S.PENDING]


async def test_a_gate_that_is_used_again_and_again_stays(world: World) -> None:
    for _ in range(3):
        await world.worker()
        await world.submit(options=by_customer(1))
        await world.finish(await world.claim_one())
        await world.ledger.retain(Retention(10**17), 100)
        (gate,) = world.snapshot()["gates"]
        world.advance(HOUR)
    assert gate["used_us"] >= await world.now_us() - us(2 * HOUR)


async def test_a_gate_that_the_store_refuses_leaves_nothing_of_its_task(world: World) -> None:
    wrong = options(Gate(GateSort.FAIR, "work by customer (default, 4)", '"acme"', 4))
    with world.unchanged(), pytest.raises(Invalid):
        await world.submit_all([world.task(options=wrong)])
    plain, refused = await world.submit_all([world.task(), world.task(options=wrong)])
    assert isinstance(refused, Invalid)
    assert isinstance(plain, Submitted)


async def test_a_rate_that_has_started_what_waits_no_more_keeps_its_time(world: World) -> None:
    await world.submit(options=at_rate(1, 10))
    await world.finish(await world.claim_one())
    second = await world.submit(options=at_rate(1, 10))
    world.advance(9)
    await world.ledger.promote(10)
    assert await world.state(second) is S.PENDING
    world.advance(1)
    await world.ledger.promote(10)
    assert await world.state(second) is S.QUEUED


async def test_new_tasks_at_gates_bring_nobody_along_who_waits_for_the_duty(world: World) -> None:
    plain = await world.submit(delay=10)
    limited = await world.submit(delay=10, options=by_customer(5))
    world.advance(10)
    await submit_many(world, 2, options=by_customer(5))
    assert [await world.state(each) for each in (plain, limited)] == [S.PENDING] * 2
    await world.ledger.promote(10)
    assert [await world.state(each) for each in (plain, limited)] == [S.QUEUED] * 2


# Lanes


async def test_a_lane_that_was_left_and_is_used_again_stays_for_what_waits_in_it(world: World) -> None:
    await live_through(world, *KINDS)
    await world.worker(kinds=KINDS)
    await world.submit(kind="work")
    await world.finish(await world.claim_one())
    await world.ledger.retain(Retention(0), 100)
    world.advance(1)
    await world.ledger.retain(Retention(0), 100)
    # It was found empty; now a task comes by a memory of it that is still trusted.
    waiting = await world.submit(kind="work", delay=3 * DAY)
    world.advance(DAY + 1)
    await retain(world)
    assert "work" in lanes(world)
    assert await world.state(waiting) is S.PENDING


async def test_the_number_of_a_lane_is_not_given_again(world: World) -> None:
    await live_through(world, *KINDS)
    numbers = {row["lane"] for row in world.snapshot()["lanes"]}
    world.advance(DAY)
    for _ in range(2):
        await retain(world)
    await world.submit(kind="e")
    (lane,) = [row["lane"] for row in world.snapshot()["lanes"] if row["kind"] == "e"]
    assert lane not in numbers


async def test_of_two_lanes_the_one_whose_first_task_came_first_is_served_first(world: World) -> None:
    await world.worker(kinds=(KIND, "other"))
    for kind in (KIND, "other"):
        await world.submit(kind=kind)
    await world.finish(*await world.claim(2))
    for kinds in ((KIND, "other"), ("other", KIND)):
        ids = [await world.submit(kind=kind) for kind in kinds]
        leases = [await world.claim_one() for _ in ids]
        assert [lease.hold.task_id for lease in leases] == ids
        await world.finish(*leases)


# Breakers


@pytest.mark.parametrize(
    ("type", "name", "organization"), [("queue", KIND, ORGANIZATION), ("kind", KIND, ELSEWHERE)], ids=str
)
async def test_nothing_is_counted_of_a_kind_whose_breaker_is_anothers(
    world: World, type: str, name: str, organization: str
) -> None:
    breaker = {"share": None, "failures": 1, "window": 60, "min_attempts": 1, "open_for": 30, "probes": 1}
    await declare(world, "other")
    await put(world, type, name, organization, kind=KIND, breaker=breaker)  # type: ignore[arg-type]
    await submit_many(world, 2, max_attempts=9)
    (answer,) = await end(world, BAD)
    assert answer.turned is None
    assert world.snapshot()["outcomes"] == []
