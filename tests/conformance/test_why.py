"""Why a task does not run: each thing that a claim looks at is named, and where nothing is, the next claim takes it."""

from collections.abc import Awaitable, Callable
from itertools import combinations

import msgspec
import pytest

from conformance.making import KIND, ORGANIZATION, QUEUE, World, retry_in
from perdure.domain.gate import Gate, GateSort
from perdure.domain.limits import SECOND_US
from perdure.domain.why import ObstacleSort
from perdure.errors import NotFound
from perdure.store.ledger import WorkerOrder

LIMITED = msgspec.json.encode({"gates": [Gate(GateSort.CONCURRENCY, "work by customer", '"acme"', 1)]}).decode()
RATED = msgspec.json.encode({"gates": [Gate(GateSort.RATE, "work", "", 1, 600 * SECOND_US)]}).decode()


async def sorts(world: World, task_id: str) -> list[ObstacleSort]:
    """What is told, by sort."""
    return [each.sort for each in await world.views.why(ORGANIZATION, task_id)]


class Blocked:
    """A task to be, and what blocks and frees it, put together from several ways."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.given: dict[str, object] = {}
        self.first: list[Callable[[], Awaitable[object]]] = []
        """Done before the task is submitted."""
        self.then: list[Callable[[], Awaitable[object]]] = []
        """Done once it is."""
        self.free: list[Callable[[], Awaitable[object]]] = []


async def _pause(world: World, what: str, name: str, paused: bool) -> None:
    stored = await world.definitions.get(ORGANIZATION, what, name)  # type: ignore[arg-type]
    said = {} if stored is None else msgspec.json.decode(stored.document)
    document = msgspec.json.encode({**said, "paused": paused}).decode()
    await world.definitions.put(ORGANIZATION, what, name, document, "bob")


def _delay(blocked: Blocked) -> ObstacleSort:
    blocked.given["delay"] = 10

    async def free() -> None:
        blocked.world.advance(10)

    blocked.free.append(free)
    return ObstacleSort.DELAY


def _queue_paused(blocked: Blocked) -> ObstacleSort:
    blocked.then.append(lambda: _pause(blocked.world, "queue", QUEUE, True))
    blocked.free.append(lambda: _pause(blocked.world, "queue", QUEUE, False))
    return ObstacleSort.QUEUE_PAUSED


def _organization_paused(blocked: Blocked) -> ObstacleSort:
    blocked.then.append(lambda: _pause(blocked.world, "organization", ORGANIZATION, True))
    blocked.free.append(lambda: _pause(blocked.world, "organization", ORGANIZATION, False))
    return ObstacleSort.ORGANIZATION_PAUSED


def _kind_paused(blocked: Blocked) -> ObstacleSort:
    blocked.then.append(lambda: _pause(blocked.world, "kind", KIND, True))
    blocked.free.append(lambda: _pause(blocked.world, "kind", KIND, False))
    return ObstacleSort.KIND_PAUSED


def _breaker_open(blocked: Blocked) -> ObstacleSort:
    world = blocked.world

    async def open_it() -> None:
        document = {"kind": KIND, "breaker": {"failures": 1}}
        stored = await world.definitions.get(ORGANIZATION, "kind", KIND)
        said = {} if stored is None else msgspec.json.decode(stored.document)
        await world.definitions.put(
            ORGANIZATION, "kind", KIND, msgspec.json.encode({**said, **document}).decode(), "bob"
        )
        await world.ledger.trip_breaker(ORGANIZATION, KIND, 600 * SECOND_US, "bob")

    blocked.then.append(open_it)
    blocked.free.append(lambda: world.ledger.reset_breaker(ORGANIZATION, KIND, "bob"))
    return ObstacleSort.BREAKER


def _at_limit(blocked: Blocked) -> ObstacleSort:
    world = blocked.world
    blocked.given["options"] = LIMITED
    leases = []

    async def first() -> None:
        await world.submit(options=LIMITED)
        leases.extend(await world.claim(1))

    async def free() -> None:
        await world.finish(*leases)

    blocked.first.append(first)
    blocked.free.append(free)
    return ObstacleSort.LIMIT


def _capability(blocked: Blocked) -> ObstacleSort:
    blocked.given["capabilities"] = ("gpu",)
    blocked.free.append(lambda: blocked.world.worker(capabilities=("gpu",)))
    return ObstacleSort.NO_WORKER


WAYS = {
    way.__name__.removeprefix("_"): way
    for way in (
        _delay,
        _queue_paused,
        _organization_paused,
        _kind_paused,
        _breaker_open,
        _at_limit,
        _capability,
    )
}
PAIRS = [*((name,) for name in WAYS), *combinations(WAYS, 2)]


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
async def test_what_blocks_a_task_is_named_and_without_it_the_next_claim_takes_it(
    world: World, names: tuple[str, ...]
) -> None:
    blocked = Blocked(world)
    expected = [WAYS[name](blocked) for name in names]
    for act in blocked.first:
        await act()
    task_id = await world.submit(**blocked.given)
    for act in blocked.then:
        await act()
    told = await sorts(world, task_id)
    # A task that is not due yet has not come to its gate: what is behind is told once it is there.
    if ObstacleSort.DELAY in expected:
        expected = [each for each in expected if each is not ObstacleSort.LIMIT]
    assert sorted(told) == sorted(expected)
    assert await world.claim(10) == []
    for act in blocked.free:
        await act()
    await world.ledger.promote(100)
    assert await sorts(world, task_id) == []
    assert [lease.hold.task_id for lease in await world.claim(1)] == [task_id]


async def test_open_parents_are_named(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    (told,) = await world.views.why(ORGANIZATION, family["b"])
    assert (told.sort, told.by) == (ObstacleSort.DEPENDENCIES, (family["a"],))


async def test_who_is_at_the_limit_is_named_and_how_many_wait_before(world: World) -> None:
    await world.worker()
    first = await world.submit(options=LIMITED)
    await world.submit(options=LIMITED)
    third = await world.submit(options=LIMITED)
    (told,) = await world.views.why(ORGANIZATION, third)
    assert told.by == (first,)
    assert '1 of 1 are at work, the limit of work by customer for "acme"; before it waits there: 1 task' in told.text


async def test_the_time_of_the_next_start_at_a_rate_is_told(world: World) -> None:
    await world.worker()
    await world.submit(options=RATED)
    await world.claim_one()
    second = await world.submit(options=RATED)
    (told,) = await world.views.why(ORGANIZATION, second)
    assert (told.sort, told.until_us) == (ObstacleSort.LIMIT, await world.now_us() + 600 * SECOND_US)


@pytest.mark.parametrize(("type", "name"), [("queue", QUEUE), ("organization", ORGANIZATION)], ids=["queue", "all"])
async def test_a_limit_of_a_queue_or_of_the_organization_is_named(world: World, type: str, name: str) -> None:
    await world.worker()
    first, second = await world.submit(), await world.submit()
    lease = await world.claim_one()
    document = msgspec.json.encode({"concurrency": 1, "rate": 1, "per": 60}).decode()
    await world.definitions.put(ORGANIZATION, type, name, document, "bob")  # type: ignore[arg-type]
    (obstacle,) = await world.views.why(ORGANIZATION, second)
    assert (obstacle.sort, obstacle.text) == (ObstacleSort.LIMIT, f"1 are at work, the limit of {type} {name!r}")
    assert await world.claim(1) == []
    await world.finish(lease)
    assert await world.views.why(ORGANIZATION, second) == []
    third = await world.submit()
    await world.finish(await world.claim_one())
    (obstacle,) = await world.views.why(ORGANIZATION, third)
    assert obstacle.text == f"1 have started in 60 s, the limit of {type} {name!r}"
    assert obstacle.until_us == await world.now_us() + 60 * SECOND_US
    assert await world.claim(1) == []
    world.advance(60)
    assert await world.views.why(ORGANIZATION, third) == []
    assert [each.hold.task_id for each in await world.claim(1)] == [third]
    assert first != second


async def test_an_open_breaker_is_named_with_its_time_and_then_its_probes(world: World) -> None:
    document = {"kind": KIND, "breaker": {"failures": 1, "open_for": 30, "probes": 1}}
    await world.definitions.put(ORGANIZATION, "kind", KIND, msgspec.json.encode(document).decode(), "bob")
    await world.worker()
    first, second = await world.submit(max_attempts=9), await world.submit()
    await world.settle(await world.claim_one(), retry_in(3_000))
    until_us = await world.now_us() + 30 * SECOND_US
    (obstacle,) = await world.views.why(ORGANIZATION, second)
    assert (obstacle.sort, obstacle.by, obstacle.until_us) == (ObstacleSort.BREAKER, (KIND,), until_us)
    world.advance(30)
    assert await world.views.why(ORGANIZATION, second) == []
    third = await world.submit()
    probe = await world.claim_one()
    (obstacle,) = await world.views.why(ORGANIZATION, third)
    assert (obstacle.sort, obstacle.until_us) == (ObstacleSort.BREAKER, until_us + 30 * SECOND_US)
    assert "half open" in obstacle.text
    await world.finish(probe)
    assert await world.views.why(ORGANIZATION, third) == []
    assert first != second


async def test_the_one_in_line_of_the_same_key_is_named(world: World) -> None:
    turns = msgspec.json.encode({"gates": [Gate(GateSort.FAIR, "work by customer (default, 4)", '"acme"', 1)]}).decode()
    await world.worker()
    first, second = await world.submit(options=turns), await world.submit(options=turns)
    (obstacle,) = await world.views.why(ORGANIZATION, second)
    assert (obstacle.sort, obstacle.by) == (ObstacleSort.LIMIT, (first,))
    assert "keys take turns" in obstacle.text
    await world.claim(1)
    assert await world.views.why(ORGANIZATION, second) == []


async def test_a_retry_is_told_with_its_time(world: World) -> None:
    await world.worker()
    task_id = await world.submit()
    await world.finish(await world.claim_one(), settlement=retry_in(60))
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert (told.sort, told.until_us) == (ObstacleSort.RETRY, await world.now_us() + 60 * SECOND_US)


async def test_workers_that_do_not_fit_are_told_apart(world: World) -> None:
    task_id = await world.submit()
    await world.ledger.leave("w")
    texts = []
    for id, given in (("a", {"queues": ("other",)}), ("b", {"kinds": ("other",)})):
        texts.append((await world.views.why(ORGANIZATION, task_id))[0].text)
        await world.worker(id, **given)
    texts.append((await world.views.why(ORGANIZATION, task_id))[0].text)
    assert texts == [
        "no live worker serves queue 'default'",
        "no live worker serves queue 'default'",
        "none of 1 worker in queue 'default' has kind 'work'",
    ]


async def test_the_kind_that_may_be_meant_is_named(world: World) -> None:
    await world.worker(kinds=("shop.charge", "mail"))
    task_id = await world.submit(kind="shop.charg")
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert (
        told.frees
        == "start a worker that has 'shop.charg', or was 'shop.charge' meant? Else the task fails as unroutable"
    )


async def test_when_a_task_without_a_worker_for_its_kind_fails_is_told_once_that_is_known(world: World) -> None:
    await world.worker(kinds=("other",))
    task_id = await world.submit()
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert (told.sort, told.until_us) == (ObstacleSort.NO_WORKER, None)
    assert told.frees == "start a worker that has 'work'; else the task fails as unroutable"
    await world.ledger.fail_unroutable(3600 * SECOND_US, 120 * SECOND_US, 100)
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert told.until_us == await world.now_us() + 3600 * SECOND_US
    await world.worker("able")
    assert await world.views.why(ORGANIZATION, task_id) == []


async def test_workers_that_are_full_or_paused_are_named(world: World) -> None:
    await world.worker(capacity=1)
    await world.submit()
    await world.claim_one()
    task_id = await world.submit()
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert (told.sort, told.by) == (ObstacleSort.WORKERS_BUSY, ("w",))
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.PAUSE, "bob")
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert (told.sort, told.by) == (ObstacleSort.NO_WORKER, ("w",))


async def test_workers_that_drain_are_told_as_such(world: World) -> None:
    await world.worker()
    await world.submit()
    await world.claim_one()
    task_id = await world.submit()
    await world.ledger.heartbeat("w", 0)
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert (told.sort, told.by) == (ObstacleSort.NO_WORKER, ("w",))
    assert told.text == "1 worker could run it, and each drains: it finishes what it has and takes nothing more"
    await world.worker("v")
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.PAUSE, "bob")
    (told,) = await world.views.why(ORGANIZATION, task_id)
    assert told.text == "2 workers could run it, and each drains or is ordered to pause, drain or stop"


async def test_those_before_it_in_line_are_counted(world: World) -> None:
    await world.worker()
    await world.submit()
    second = await world.submit()
    (told,) = await world.views.why(ORGANIZATION, second)
    assert told.sort is ObstacleSort.LINE
    await world.claim(1)
    assert await sorts(world, second) == []


async def test_more_urgent_work_of_other_lanes_is_before_it(world: World) -> None:
    await world.worker()
    task_id = await world.submit()
    await world.submit(priority=9)
    assert await sorts(world, task_id) == [ObstacleSort.LINE]


async def test_what_runs_and_what_has_ended_is_said_so(world: World) -> None:
    await world.worker()
    task_id = await world.submit()
    lease = await world.claim_one()
    assert await sorts(world, task_id) == [ObstacleSort.AT_WORK]
    await world.cancel(task_id)
    assert await sorts(world, task_id) == [ObstacleSort.CANCELLING]
    await world.finish(lease)
    assert await sorts(world, task_id) == [ObstacleSort.ENDED]


async def test_an_unknown_task_and_one_of_another_organization_are_not_found(world: World) -> None:
    task_id = await world.submit()
    for organization, asked in ((ORGANIZATION, "nothing"), ("elsewhere", task_id)):
        with pytest.raises(NotFound):
            await world.views.why(organization, asked)
