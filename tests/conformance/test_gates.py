"""Limits by key: what is over a limit waits, and takes the slot that another gives back; no slot is lost or doubled."""

import random
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from conformance.making import DONE, FAILED, World, retry_in, us
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort, WhenFull
from perdure.domain.limit import Limit, fair_gate
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason, TaskState
from perdure.store.ledger import Submitted


def options(*gates: Gate) -> str:
    """The options of a task with these gates."""
    return msgspec.json.encode({"gates": gates}).decode()


def by_customer(slots: int, key: str = '"acme"', when_full: WhenFull = WhenFull.QUEUE) -> str:
    """So many tasks of one customer at once."""
    return options(Gate(GateSort.CONCURRENCY, "work by customer", key, slots, None, when_full))


def in_order(key: str = '"acme"') -> str:
    """One task of an account after the other."""
    return options(Gate(GateSort.ORDER, "work by account", key, 1))


def at_rate(count: int, seconds: float, key: str = "") -> str:
    """So many starts in so many seconds."""
    return options(Gate(GateSort.RATE, "work", key, count, us(seconds)))


async def states(world: World, ids: Sequence[str]) -> Counter[TaskState]:
    """How many of these tasks are in which state."""
    return Counter([await world.state(each) for each in ids])


async def submit_many(world: World, count: int, **given: object) -> list[str]:
    """Submit that many tasks in one call."""
    answers = await world.submit_all([world.task(**given) for _ in range(count)])
    assert all(isinstance(each, Submitted) for each in answers)
    return [each.id for each in answers if isinstance(each, Submitted)]


async def test_no_more_of_a_key_run_at_once_than_its_limit(world: World) -> None:
    ids = await submit_many(world, 5, options=by_customer(2))
    assert await states(world, ids) == {TaskState.QUEUED: 2, TaskState.PENDING: 3}
    await world.worker(capacity=100)
    leases = await world.claim(10)
    assert [each.hold.task_id for each in leases] == ids[:2]
    assert await world.claim(10) == []


async def test_the_longest_key_of_the_longest_fields_of_the_longest_kind_fits_into_every_store(world: World) -> None:
    chance = random.Random(1)

    def noise(count: int, low: int, high: int) -> str:
        return "".join(chr(chance.randint(low, high)) for _ in range(count))

    limit = Limit(concurrency=1, by=tuple(noise(limits.FIELD_NAME_MAX_BYTES // 4, 0x20000, 0x2A000) for _ in range(8)))
    queue, key = noise(limits.QUEUE_MAX_CHARS, 97, 122), noise(limits.LIMIT_KEY_MAX_CHARS, 0x20000, 0x2A000)
    kind = noise(limits.KIND_MAX_CHARS, 97, 122)
    given = options(limit.gate(kind, key), fair_gate(kind, limit.by, key, queue, 4))
    ids = await submit_many(world, 2, queue=queue, kind=kind, options=given)
    assert await states(world, ids) == {TaskState.QUEUED: 1, TaskState.PENDING: 1}


async def test_the_answer_of_a_submit_tells_who_waits(world: World) -> None:
    answers = await world.submit_all([world.task(options=by_customer(1)) for _ in range(2)])
    assert [each.state for each in answers if isinstance(each, Submitted)] == [TaskState.QUEUED, TaskState.PENDING]


async def test_other_keys_and_other_organizations_have_limits_of_their_own(world: World) -> None:
    first = await world.submit(options=by_customer(1))
    other = await world.submit(options=by_customer(1, '"other"'))
    foreign = await world.submit_all([world.task(options=by_customer(1), organization="elsewhere")])
    assert [await world.state(each) for each in (first, other)] == [TaskState.QUEUED] * 2
    assert isinstance(foreign[0], Submitted)
    assert foreign[0].state is TaskState.QUEUED


@pytest.mark.parametrize("settlement", [DONE, FAILED, retry_in(60)], ids=["succeeded", "failed", "retrying"])
async def test_the_end_of_an_attempt_lets_the_next_one_in(world: World, settlement: Settlement) -> None:
    ids = await submit_many(world, 3, options=by_customer(1))
    await world.worker()
    await world.finish(await world.claim_one(), settlement=settlement)
    assert await world.state(ids[1]) is TaskState.QUEUED
    assert await world.state(ids[2]) is TaskState.PENDING


async def test_a_retry_takes_a_slot_again_and_goes_before_what_was_submitted_later(world: World) -> None:
    ids = await submit_many(world, 3, options=by_customer(1))
    await world.worker()
    await world.finish(await world.claim_one(), settlement=retry_in(5))
    second = await world.claim_one()
    world.advance(5)
    await world.ledger.promote(100)
    assert await world.state(ids[0]) is TaskState.RETRYING
    await world.finish(second)
    assert (await world.claim_one()).hold.task_id == ids[0]
    assert await world.state(ids[2]) is TaskState.PENDING


async def test_more_urgent_tasks_get_the_next_slot(world: World) -> None:
    await world.worker()
    await world.submit(options=by_customer(1))
    later = await world.submit(options=by_customer(1))
    urgent = await world.submit(options=by_customer(1), priority=9)
    await world.finish(await world.claim_one())
    assert await world.state(urgent) is TaskState.QUEUED
    assert await world.state(later) is TaskState.PENDING


async def test_a_cancel_of_what_has_a_slot_lets_the_next_one_in(world: World) -> None:
    ids = await submit_many(world, 2, options=by_customer(1))
    await world.cancel(ids[0])
    assert await world.state(ids[1]) is TaskState.QUEUED


async def test_a_cancel_of_what_waits_for_a_slot_costs_nobody_a_slot(world: World) -> None:
    ids = await submit_many(world, 3, options=by_customer(1))
    await world.cancel(ids[1])
    assert [await world.state(each) for each in ids] == [TaskState.QUEUED, TaskState.CANCELLED, TaskState.PENDING]
    await world.worker()
    await world.finish(await world.claim_one())
    assert await world.state(ids[2]) is TaskState.QUEUED


async def test_a_cancelling_task_keeps_its_slot_until_it_has_stopped(world: World) -> None:
    ids = await submit_many(world, 2, options=by_customer(1))
    await world.worker()
    lease = await world.claim_one()
    await world.cancel(ids[0])
    assert await world.state(ids[1]) is TaskState.PENDING
    await world.finish(lease)
    assert await world.state(ids[1]) is TaskState.QUEUED


async def test_a_lost_worker_keeps_no_slot(world: World) -> None:
    ids = await submit_many(world, 2, options=by_customer(1), on_loss="fail")
    await world.worker()
    await world.claim_one()
    world.advance(61)
    await world.sweep()
    assert await world.state(ids[0]) is TaskState.DEAD_LETTERED
    assert await world.state(ids[1]) is TaskState.QUEUED


async def test_what_is_handed_back_keeps_its_slot(world: World) -> None:
    ids = await submit_many(world, 2, options=by_customer(1))
    await world.worker()
    await world.finish(await world.claim_one(), settlement=Settlement.handed_back())
    assert [await world.state(each) for each in ids] == [TaskState.QUEUED, TaskState.PENDING]
    assert (await world.claim_one()).hold.task_id == ids[0]


async def test_a_delayed_task_takes_its_slot_when_it_is_due(world: World) -> None:
    delayed = await world.submit(options=by_customer(1), delay=10)
    first = await world.submit(options=by_customer(1))
    assert await world.state(first) is TaskState.QUEUED
    world.advance(10)
    await world.ledger.promote(100)
    assert await world.state(delayed) is TaskState.PENDING
    await world.worker()
    await world.finish(await world.claim_one())
    assert await world.state(delayed) is TaskState.QUEUED


async def test_what_waits_for_a_slot_ends_by_its_ttl(world: World) -> None:
    ids = await submit_many(world, 2, options=by_customer(1), ttl=10)
    await world.worker()
    await world.claim_one()
    world.advance(10)
    await world.ledger.expire(100)
    assert await world.state(ids[1]) is TaskState.EXPIRED


async def test_the_task_submitted_last_says_what_the_limit_is(world: World) -> None:
    await submit_many(world, 2, options=by_customer(1))
    third = await world.submit(options=by_customer(3))
    assert await world.state(third) is TaskState.PENDING, "others were there before"
    await world.worker()
    await world.finish(await world.claim_one())
    assert await world.state(third) is TaskState.QUEUED


async def test_where_the_newest_is_to_go_it_is_cancelled(world: World) -> None:
    when_full = WhenFull.CANCEL_NEWEST
    answers = await world.submit_all([world.task(options=by_customer(1, when_full=when_full)) for _ in range(2)])
    first, second = [each for each in answers if isinstance(each, Submitted)]
    assert (first.state, second.state) == (TaskState.QUEUED, TaskState.CANCELLED)
    assert (await world.look(second.id)).reason is Reason.SUPERSEDED


async def test_where_the_newest_is_to_win_those_before_it_are_cancelled(world: World) -> None:
    when_full = WhenFull.CANCEL_RUNNING
    first = await world.submit(options=by_customer(1, when_full=when_full))
    await world.worker()
    lease = await world.claim_one()
    second = await world.submit(options=by_customer(1, when_full=when_full))
    third = await world.submit(options=by_customer(1, when_full=when_full))
    assert [await world.state(each) for each in (first, second, third)] == [
        TaskState.CANCELLING,
        TaskState.CANCELLED,
        TaskState.PENDING,
    ]
    await world.finish(lease)
    assert await world.state(first) is TaskState.CANCELLED
    assert await world.state(third) is TaskState.QUEUED
    assert (await world.look(first)).reason is Reason.SUPERSEDED


async def test_tasks_of_one_order_run_one_after_the_other_even_through_retries(world: World) -> None:
    ids = await submit_many(world, 3, options=in_order())
    await world.worker()
    ran = []
    for settlement in (retry_in(5), DONE, FAILED, DONE):
        lease = await world.claim_one()
        assert await world.claim(10) == []
        ran.append(lease.hold.task_id)
        await world.finish(lease, settlement=settlement)
        world.advance(5)
    assert ran == [ids[0], ids[0], ids[1], ids[2]]


async def test_an_urgent_task_does_not_overtake_in_an_order(world: World) -> None:
    ids = [await world.submit(options=in_order(), priority=priority) for priority in (4, 4, 9)]
    await world.worker()
    await world.finish(await world.claim_one())
    assert await world.state(ids[1]) is TaskState.QUEUED


async def test_no_more_start_in_any_window_than_the_rate_says(world: World) -> None:
    await submit_many(world, 12, options=at_rate(3, 10))
    await world.worker(capacity=100)
    starts: list[float] = []
    chance = random.Random(5)
    for _ in range(60):
        leases = await world.claim(10)
        starts += [world.clock.passed_us / 1e6] * len(leases)
        await world.finish(*leases)
        world.advance(chance.uniform(0.2, 2))
    assert len(starts) == 12
    for begin in starts:
        assert sum(begin <= each < begin + 10 for each in starts) <= 3, starts
    assert starts[-1] < 36, "and no slower than it has to be"


async def test_starts_that_are_late_do_not_come_in_a_burst(world: World) -> None:
    await submit_many(world, 6, options=at_rate(2, 10))
    await world.worker(capacity=100)
    world.advance(100)
    assert len(await world.claim(10)) == 2
    assert await world.claim(10) == []
    world.advance(10)
    assert len(await world.claim(10)) == 2


async def test_a_second_start_of_a_task_counts_against_its_rate(world: World) -> None:
    await submit_many(world, 2, options=at_rate(2, 10))
    await world.worker(capacity=100)
    first, second = await world.claim(10)
    await world.finish(first, settlement=Settlement.handed_back())
    await world.finish(second, settlement=retry_in(1))
    world.advance(1)
    await world.ledger.promote(100)
    assert await world.claim(10) == []
    world.advance(9)
    assert len(await world.claim(10)) == 2


async def test_the_next_turn_at_a_rate_is_told_to_who_sweeps(world: World) -> None:
    await submit_many(world, 2, options=at_rate(1, 10))
    await world.worker()
    await world.claim_one()
    swept = await world.ledger.promote(100)
    assert swept.next_us == await world.now_us() + us(10)


async def test_a_task_passes_all_of_its_gates(world: World) -> None:
    both = options(
        Gate(GateSort.CONCURRENCY, "work by customer", '"acme"', 2), Gate(GateSort.RATE, "work", "", 1, us(10))
    )
    ids = await submit_many(world, 3, options=both)
    await world.worker(capacity=100)
    (lease,) = await world.claim(10)
    await world.finish(lease)
    assert await states(world, ids) == {TaskState.SUCCEEDED: 1, TaskState.PENDING: 2}
    world.advance(10)
    assert len(await world.claim(10)) == 1


async def test_a_redriven_task_takes_a_slot_again(world: World) -> None:
    ids = await submit_many(world, 2, options=by_customer(1))
    await world.worker()
    await world.finish(await world.claim_one(), settlement=FAILED)
    await world.redrive(ids[0])
    assert await world.state(ids[0]) is TaskState.PENDING
    await world.finish(await world.claim_one())
    assert await world.state(ids[0]) is TaskState.QUEUED


async def test_children_of_a_job_pass_their_gates_when_their_parents_have_ended(world: World) -> None:
    graph = {"a": [], "b": ["a"], "c": ["a"]}
    family = await world.submit_job(graph, tasks={name: {"options": by_customer(1)} for name in ("b", "c")})
    await world.worker()
    await world.finish(await world.claim_one())
    assert Counter((await world.states(family)).values()) == {
        TaskState.SUCCEEDED: 1,
        TaskState.QUEUED: 1,
        TaskState.PENDING: 1,
    }


async def test_whatever_happens_no_slot_is_lost_and_no_limit_passed(world: World) -> None:
    chance = random.Random(11)
    keys = ['"a"', '"b"', '"c"']
    slots = {'"a"': 1, '"b"': 2, '"c"': 3}
    held: list[Lease] = []
    ids: list[str] = []
    await world.worker(capacity=1000)
    for _ in range(150):
        act = chance.randrange(7)
        if act <= 1:
            key = chance.choice(keys)
            ids += await submit_many(
                world, chance.randint(1, 4), options=by_customer(slots[key], key), max_attempts=1000
            )
        elif act == 2:
            held += await world.claim(chance.randint(1, 5))
        elif held and act in (3, 4):
            lease = held.pop(chance.randrange(len(held)))
            outcome = chance.choice([DONE, FAILED, retry_in(3), Settlement.handed_back(), Settlement.snoozed(us(2))])
            await world.settle(lease, outcome)
        elif ids and act == 5:
            await world.cancel(chance.choice(ids))
        else:
            world.advance(chance.uniform(0.5, 3))
            await world.ledger.promote(100)
        active = Counter(each["key"] for each in _at_work(world))
        assert all(active[key] <= slots[key] for key in keys), active
    for lease in held:
        await world.settle(lease, DONE)
    for _ in range(400):
        world.advance(5)
        leases = await world.claim(50)
        for lease in leases:
            await world.settle(lease, DONE)
        if {state.value for state in await states(world, ids)} <= _ENDS:
            break
    else:
        raise AssertionError(await states(world, ids))
    assert world.snapshot()["slots"] == []


_ENDS = {"succeeded", "dead_lettered", "failed", "cancelled"}


def _at_work(world: World) -> list[dict[str, str]]:
    """The tasks that may be claimed or are held, by their keys."""
    rows = world.snapshot()
    tasks = {row["n"]: row for row in rows["tasks"]}
    return [
        {"key": _options(tasks[row["n"]]["options"])["gates"][0][2]}
        for row in rows["live"]
        if row["state"] in ("queued", "leased", "running", "cancelling")
    ]


def _options(stored: object) -> dict[str, list[list[str]]]:
    decoded: dict[str, list[list[str]]] = msgspec.json.decode(stored) if isinstance(stored, str) else stored  # type: ignore[assignment]
    return decoded
