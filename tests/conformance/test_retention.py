"""Retention removes what ended long ago with all that belongs to it, and nothing else."""

import pytest

from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, World, part, us
from perdure.domain.attempt import Progress
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import JobState, TaskState
from perdure.store.ledger import Swept

KEEP = 1000
KEPT = Retention(us(KEEP))


async def retain(world: World, limit: int = 100) -> int:
    moved = 0
    for _ in range(1000):
        swept = await world.ledger.retain(KEPT, limit)
        moved += swept.moved
        if not swept.more:
            return moved
    raise AssertionError("retention does not come to an end")


async def full_life(world: World, settlement: Settlement = DONE, **given: object) -> str:
    """A task with a row in every table that there is."""
    lease = await world.lease(**given)
    await world.report(lease, progress=Progress(1), phase="executing", checkpoint="1", part=part(1, final=True))
    await world.settle(lease, Settlement.handed_back())
    again = await world.claim_one()
    await world.finish(again, settlement=settlement)
    return lease.hold.task_id


@pytest.mark.parametrize("settlement", [DONE, FAILED, Settlement.gave_up("why")], ids=lambda each: str(each.state))
async def test_what_ended_long_ago_goes_with_all_that_belongs_to_it(world: World, settlement: Settlement) -> None:
    empty = {table: len(rows) for table, rows in world.snapshot().items()}
    task_id = await full_life(world, settlement)
    world.advance(KEEP + 1)
    await retain(world)
    assert await world.views.task(ORGANIZATION, task_id) is None
    left = {table: len(rows) for table, rows in world.snapshot().items()}
    grown = {table for table in left if left[table] > empty.get(table, 0)}
    assert grown <= {"lanes", "counts"}


async def test_what_ended_lately_stays(world: World) -> None:
    task_id = await full_life(world)
    world.advance(KEEP - 1)
    with world.unchanged():
        assert await retain(world) == 0
    assert await world.state(task_id) is TaskState.SUCCEEDED


async def test_an_open_task_stays_however_old(world: World) -> None:
    waiting = await world.submit(delay=1_000_000)
    lease = await world.lease(lease=3600)
    for _ in range(3):
        world.advance(1800)
        await world.ledger.heartbeat("w", 10)
        await world.renew(lease)
        await retain(world)
    assert await world.state(waiting) is TaskState.PENDING
    assert await world.state(lease.hold.task_id) is TaskState.LEASED


async def test_a_task_of_an_open_job_stays_and_its_result_with_it(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"]}, tasks={"b": {"delay": 3 * KEEP}})
    await world.run(family, "a")
    world.advance(2 * KEEP)
    await world.worker()
    assert await retain(world) == 0
    world.advance(KEEP)
    await world.ledger.heartbeat("w", 10)
    lease = await world.claim_one()
    assert set(await world.ledger.inputs(lease.hold)) == {"a"}
    await world.finish(lease)


async def test_a_job_goes_whole_and_only_after_its_own_end(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a")
    world.advance(KEEP - 10)
    await world.run(family, "b")
    world.advance(20)
    assert await retain(world) == 0
    world.advance(KEEP)
    await retain(world)
    assert await world.views.job(ORGANIZATION, family.id) is None
    for name in ("a", "b"):
        assert await world.views.task(ORGANIZATION, family[name]) is None
    assert not world.snapshot()["edges"]


async def test_a_large_job_goes_in_bounded_steps(world: World) -> None:
    family = await world.submit_job({f"t{n}": [] for n in range(95)})
    await world.finish(*await world.claim(95))
    world.advance(KEEP + 1)
    sizes = []
    while True:
        swept = await world.ledger.retain(KEPT, 20)
        sizes.append(swept.moved)
        if not swept.more:
            break
    assert max(sizes) <= 21
    assert await world.views.job(ORGANIZATION, family.id) is None


async def test_retention_is_bounded_and_says_whether_there_is_more(world: World) -> None:
    await world.submit_all([world.task() for _ in range(25)])
    await world.finish(*await world.claim(25))
    world.advance(KEEP + 1)
    first = await world.ledger.retain(KEPT, 10)
    assert isinstance(first, Swept)
    assert first.moved <= 10
    assert first.more
    assert first.moved + await retain(world, 10) >= 25


async def test_a_redriven_task_is_kept_from_its_new_end(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    world.advance(KEEP - 1)
    await world.redrive(lease.hold.task_id)
    await world.ledger.heartbeat("w", 10)
    again = await world.claim_one()
    await world.finish(again)
    world.advance(2)
    await retain(world)
    assert await world.state(lease.hold.task_id) is TaskState.SUCCEEDED


async def test_expired_keys_go_and_living_ones_stay(world: World) -> None:
    from perdure.domain import limits

    await world.submit(idempotency_key="old", request_hash="h", delay=1_000_000)
    world.clock.advance(limits.IDEMPOTENCY_KEY_LIFE_US - us(HOUR))
    await world.submit(idempotency_key="new", request_hash="h", delay=1_000_000)
    world.advance(HOUR + 1)
    await retain(world)
    assert [row["key"] for row in world.snapshot()["idempotency"]] == ["new"]


async def test_workers_not_seen_for_long_go_unless_they_hold_something(world: World) -> None:
    await world.worker("idle")
    await world.worker("busy")
    await world.submit(lease=3600)
    await world.claim(1, "busy")
    world.advance(HOUR + 1)
    await world.ledger.heartbeat("w", 10)
    await retain(world)
    kept = {each.id for each in await world.views.workers(ORGANIZATION, None)}
    assert "idle" not in kept
    assert "w" in kept


async def test_a_worker_between_two_heartbeats_stays_however_short_retention_is(world: World) -> None:
    world.advance(60)
    await world.ledger.retain(Retention(0), 100)
    await world.submit()
    assert await world.claim_one()


async def test_what_stays_still_counts_right(world: World) -> None:
    await full_life(world)
    world.advance(KEEP)
    await world.ledger.heartbeat("w", 10)
    late = await full_life(world)
    world.advance(10)
    await retain(world)
    overview = await world.views.overview(ORGANIZATION)
    assert [(row.state, row.tasks) for row in overview.counts if row.tasks] == [(TaskState.SUCCEEDED, 1)]
    assert (overview.tasks, overview.attempts, overview.results) == (1, 2, 1)
    assert await world.state(late) is TaskState.SUCCEEDED


async def test_a_failed_job_can_be_redriven_until_retention_takes_it(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a", settlement=FAILED)
    world.advance(KEEP - 1)
    await world.ledger.heartbeat("w", 10)
    await world.redrive(family["a"])
    world.advance(10)
    await retain(world)
    await world.cascade()
    assert (await world.look_job(family)).state is JobState.RUNNING
    await world.run(family, "a")
    await world.run(family, "b")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED
