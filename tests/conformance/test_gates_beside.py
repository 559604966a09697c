"""Limits by key beside others: what one task does at its gates touches no slot, no turn and no rate of a bystander."""

from conformance.making import DONE, World, retry_in, us
from conformance.test_gates import at_rate, by_customer, in_order, options, states, submit_many
from perdure.domain.gate import Gate, GateSort, WhenFull
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.store.ledger import Submitted

ACME, OTHER = '"acme"', '"other"'
ELSEWHERE = "elsewhere"


async def twins(world: World, options: str) -> tuple[str, str]:
    """Two tasks of the same id in two organizations; the first one's worker is `w`."""
    await world.worker(organizations=("default",))
    await world.worker("away", organizations=(ELSEWHERE,))
    id = await world.submit(options=options)
    (answer,) = await world.submit_all([world.task(id=id, organization=ELSEWHERE, options=options)])
    assert isinstance(answer, Submitted)
    return id, answer.id


async def test_a_start_spends_no_slot_of_what_has_not_started(world: World) -> None:
    await world.worker()
    await world.submit(options=at_rate(1, 10, ACME))
    await world.submit(options=at_rate(1, 10, OTHER))
    started = await world.claim_one()
    next_one = await world.submit(options=at_rate(1, 10, OTHER))
    world.advance(11)
    await world.ledger.promote(100)
    assert await world.state(next_one) is TaskState.PENDING, "the one before it has its slot until it has started"
    await world.finish(started)


async def test_a_start_spends_no_slot_of_a_task_of_the_same_id_elsewhere(world: World) -> None:
    await twins(world, at_rate(1, 10))
    await world.claim_one()
    (behind,) = await world.submit_all([world.task(organization=ELSEWHERE, options=at_rate(1, 10))])
    assert isinstance(behind, Submitted)
    world.advance(11)
    await world.ledger.promote(100)
    assert (await world.look(behind.id, ELSEWHERE)).state is TaskState.PENDING


async def test_a_start_gives_no_time_to_slots_that_are_not_of_a_rate(world: World) -> None:
    both = options(Gate(GateSort.CONCURRENCY, "work", "", 1), Gate(GateSort.RATE, "work", "", 5, us(1)))
    ids = await submit_many(world, 2, options=both)
    await world.worker()
    await world.claim_one()
    world.advance(60)
    await world.ledger.promote(100)
    assert await world.claim(10) == []
    assert await world.state(ids[1]) is TaskState.PENDING


async def test_a_second_start_of_a_task_leaves_the_time_of_its_first_one_as_it_is(world: World) -> None:
    await world.worker()
    await world.submit(options=at_rate(2, 10))
    await world.finish(await world.claim_one(), settlement=retry_in(4))
    world.advance(4)
    await world.claim_one()
    await submit_many(world, 3, options=at_rate(2, 10))
    assert await world.claim(10) == []
    world.advance(6)
    assert len(await world.claim(10)) == 1, "the first start is over, the second is not"


async def test_what_comes_back_sends_nobody_else_back_to_a_gate(world: World) -> None:
    await world.worker()
    await world.submit(options=at_rate(1, 10, ACME))
    beside = await world.submit(options=at_rate(1, 10, OTHER))
    plain = await world.submit()
    lease = await world.claim_one()
    await world.finish(lease, settlement=Settlement.handed_back())
    assert await world.state(lease.hold.task_id) is TaskState.PENDING
    assert [await world.state(each) for each in (beside, plain)] == [TaskState.QUEUED] * 2
    assert [each.hold.task_id for each in await world.claim(10)] == [beside, plain], "with the places that they had"


async def test_what_comes_back_without_a_rate_joins_its_lane_at_once(world: World) -> None:
    await world.worker()
    rated = await world.submit(options=at_rate(1, 10, OTHER))
    await world.finish(await world.claim_one())
    await world.submit(options=by_customer(1))
    lease = await world.claim_one()
    plain = await world.submit()
    await world.finish(lease, settlement=Settlement.handed_back())
    assert await world.state(rated) is TaskState.SUCCEEDED
    assert [each.hold.task_id for each in await world.claim(10)] == [lease.hold.task_id, plain]


async def test_a_retry_that_has_come_back_to_wait_is_sent_to_no_gate(world: World) -> None:
    await world.worker()
    ids = await submit_many(world, 2, options=at_rate(2, 10))
    first, second = await world.claim(2)
    await world.settle(first, settlement=Settlement.handed_back())
    await world.settle(second, settlement=retry_in(60))
    assert await states(world, ids) == {TaskState.PENDING: 1, TaskState.RETRYING: 1}


async def test_what_has_a_slot_of_a_rate_only_counts_until_its_time_where_the_newest_is_to_win(world: World) -> None:
    newest = by_customer(1, ACME, WhenFull.CANCEL_RUNNING)
    elsewhere = by_customer(1, OTHER, WhenFull.CANCEL_RUNNING)
    await world.worker()
    beside = await world.submit(options=elsewhere)
    waiting = await submit_many(world, 2, options=by_customer(1, '"third"'))
    first = await world.submit(options=newest)
    assert len(await world.claim(10)) == 3
    await world.submit(options=newest)
    assert await world.state(first) is TaskState.CANCELLING
    # Neither those at other gates, nor once more the one that is asked to stop.
    assert await world.state(beside) is TaskState.LEASED
    assert await states(world, waiting) == {TaskState.LEASED: 1, TaskState.PENDING: 1}
    third = await world.submit(options=newest)
    assert await world.state(first) is TaskState.CANCELLING
    assert await world.state(third) is TaskState.PENDING


async def test_what_passes_the_last_of_several_gates_takes_nobody_from_another_one(world: World) -> None:
    both = options(Gate(GateSort.ORDER, "work", "", 1), Gate(GateSort.CONCURRENCY, "work", "", 1))
    await world.worker()
    await submit_many(world, 2, options=both)
    holding, waiting = await submit_many(world, 2, options=by_customer(1))
    first, second = await world.claim(10)
    assert second.hold.task_id == holding
    await world.finish(first)
    await world.finish(second)
    assert await world.state(waiting) is TaskState.QUEUED


async def test_a_task_without_gates_is_not_taken_for_one_that_has_some(world: World) -> None:
    plain = await world.submit()
    await world.submit(options=by_customer(1))
    numbers = {each["id"]: each["n"] for each in world.snapshot()["tasks"]}
    gated = {each["n"]: bool(each["gated"]) for each in world.snapshot()["live"]}
    assert [gated[n] for id, n in sorted(numbers.items()) if id == plain] == [False]
    assert sorted(gated.values()) == [False, True]


async def test_a_delayed_task_comes_to_no_gate_before_it_is_due(world: World) -> None:
    delayed = await world.submit(options=in_order(), delay=30)
    after = await world.submit(options=in_order())
    assert [await world.state(each) for each in (delayed, after)] == [TaskState.PENDING, TaskState.QUEUED]
    await world.worker()
    await world.finish(await world.claim_one(), settlement=DONE)
    assert await world.claim(10) == []
    world.advance(30)
    assert (await world.claim_one()).hold.task_id == delayed


async def test_children_with_gates_wait_for_their_parents_first(world: World) -> None:
    family = await world.submit_job({"above": [], "below": ["above"]}, tasks={"below": {"options": by_customer(1)}})
    assert await world.states(family) == {"above": TaskState.QUEUED, "below": TaskState.PENDING}
    await world.worker()
    lease = await world.claim_one()
    beside = await world.submit(options=by_customer(1))
    assert await world.state(beside) is TaskState.QUEUED
    await world.finish(lease)
    assert (await world.states(family))["below"] is TaskState.PENDING
    await world.finish(await world.claim_one())
    assert (await world.states(family))["below"] is TaskState.QUEUED


async def test_a_gate_that_nobody_has_used_for_long_goes_and_others_stay(world: World) -> None:
    await world.worker()
    await world.submit(options=by_customer(1, '"gone"'))
    await world.finish(await world.claim_one())
    held, waiting = await submit_many(world, 2, options=by_customer(1))
    started = await world.submit(options=at_rate(1, 4 * 3600))
    assert len(await world.claim(10)) == 2
    world.advance(2 * 3600)
    fresh = await world.submit(options=by_customer(1, '"fresh"'))
    await world.ledger.retain(Retention(us(24 * 3600)), 100)
    assert {each["key"] for each in world.snapshot()["gates"]} == {ACME, "", '"fresh"'}
    assert await world.state(waiting) is TaskState.PENDING
    assert {await world.state(each) for each in (held, started)} == {TaskState.LEASED}
    assert await world.state(fresh) is TaskState.QUEUED
