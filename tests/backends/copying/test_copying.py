"""A store that was copied into another one is the same store: same rows, same answers, and it goes on from there."""

import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.making import ORGANIZATION, World, part, us
from conformance.stores import STORES, ManualClock
from perdure.domain.attempt import Progress
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Receipt, Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body
from perdure.engine.copy_store import copy_store
from perdure.errors import Conflict, UnfinishedCopy
from perdure.store.copying import NOT_COPIED, TABLES, Rows
from perdure.store.ledger import Submitted
from perdure.store.postgres.rows import PostgresRows
from perdure.store.sqlite.rows import SqliteRows
from perdure.store.views import TaskFilter

FAILED = Settlement.failed(Failure("ValueError", "böse ☠"), Reason.PERMANENT, dead_letters=False)
LETTER = Settlement.failed(Failure("ValueError", "boom"), Reason.EXHAUSTED, dead_letters=True)
RETRY = Settlement.retry(Failure("ValueError", "boom"), us(5))
WAYS = [(one, other) for one in ("sqlite", "postgres") for other in ("sqlite", "postgres")]


class Place:
    """Where one of the stores is."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir()
        self.plug = STORES[name]
        self.folder = folder

    @asynccontextmanager
    async def world(self, clock: ManualClock) -> AsyncIterator[World]:
        """The store, open."""
        store = await self.plug.open(self.folder, clock)
        try:
            yield World(store, clock, self.plug, self.folder)
        finally:
            await store.close()

    @contextmanager
    def rows(self) -> Iterator[Rows]:
        """All of its rows."""
        rows: Rows
        if self.plug.name == "sqlite":
            rows = SqliteRows(str(self.folder / "store.db"))
        else:
            from servers.databases import shared

            rows = PostgresRows(shared().house(self.folder))
        try:
            yield rows
        finally:
            rows.close()


@pytest.fixture(params=WAYS, ids=lambda way: " to ".join(way))
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Place]]:
    """A source and a destination."""
    made = [Place(name, tmp_path / part) for name, part in zip(request.param, ("source", "target"), strict=True)]
    yield made
    for each in made:
        each.plug.leave(each.folder)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def make_empty(place: Place, clock: ManualClock) -> None:
    async with place.world(clock):
        pass


def copied(places: list[Place], **options: Any) -> dict[str, int]:
    with places[0].rows() as source, places[1].rows() as target:
        return {each.table: each.rows for each in copy_store(source, target, **options)}


async def live_a_life(world: World) -> None:
    """A store with something in every table, and nobody at work."""
    await world.worker(capabilities=("gpu", "big"))
    put = world.definitions.put
    await put(ORGANIZATION, "queue", "mail", '{"depth": 50,"paused":false}', "bob")
    ended = await world.lease(options='{"labels":{"a":"b"},"metadata":null}')
    await world.report(ended, progress=Progress(1, 2, None, None), phase="executing", checkpoint='{"at":1}')
    await world.report(ended, part=part(1, b"\x00\xff binary", "one"))
    await world.finish(ended)
    if world.plug.connect is not None and world.store.caller is not None:
        lease = await world.lease()
        own = world.plug.connect(world.folder)
        own.execute(world.plug.begin)
        world.store.caller.settle(
            own, lease.hold, Receipt(lease.hold.attempt_id, True, Body(b"\x01\x02", "binary"), "s")
        )
        own.execute("COMMIT")
        own.close()
        await world.finish(lease)
    for settlement in (FAILED, LETTER, RETRY, Settlement.snoozed(us(3))):
        lease = await world.lease(idempotency_key=f"k {settlement.reason} {settlement.state}", request_hash="h")
        await world.finish(lease, settlement=settlement)
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"], "d": []}, metadata='{"x":1}')
    await world.run(family, "a", settlement=FAILED)
    await world.submit_job({"a": [], "b": ["a"]})
    await world.submit_all([world.task(priority=number, capabilities=("gpu", "big")) for number in range(10)])
    await world.submit(delay=100, payload="AP8=", encoding="binary")
    for lease in await world.claim(2):
        await world.finish(lease, settlement=Settlement.handed_back())


async def story(world: World) -> dict[str, Any]:
    """What can be seen of all tasks."""
    told = {}
    page = await world.views.tasks(ORGANIZATION, TaskFilter(), 500)
    for row in page.rows:
        history = await world.views.events(ORGANIZATION, row.id)
        told[row.id] = (await world.look(row.id), await world.views.attempts(ORGANIZATION, row.id), history)
    assert len(told) > 15
    return told


async def test_a_copy_is_the_same_store_and_goes_on(places: list[Place], clock: ManualClock) -> None:
    async with places[0].world(clock) as world:
        await live_a_life(world)
        before = await story(world)
    await make_empty(places[1], clock)
    counts = copied(places)
    assert all(
        counts[name] for name in ("tasks", "live", "ends", "attempts", "events", "frontier", "parts", "definitions")
    )
    assert not places[1].plug.contradictions(places[1].folder)
    clock.advance(us(10))
    async with places[0].world(clock) as world, places[1].world(clock) as copy:
        assert await story(copy) == before
        await world.worker(capabilities=("gpu", "big"))
        await copy.worker(capabilities=("gpu", "big"))
        there, here = await copy.claim(50), await world.claim(50)
        assert [lease.hold.task_id for lease in there] == [lease.hold.task_id for lease in here]
        fences = {id: max((each.fence for each in seen[1]), default=0) for id, seen in before.items()}
        assert all(lease.fence > fences[lease.hold.task_id] for lease in there)
        await copy.finish(*there)
        (again,) = await copy.submit_all([copy.task(idempotency_key="k permanent failed", request_hash="h")])
        assert isinstance(again, Submitted)
        assert again.replayed
        new = await copy.submit()
        await copy.cascade()
        assert [lease.hold.task_id for lease in await copy.claim(50)][-1:] == [new]
    assert not places[1].plug.contradictions(places[1].folder)


async def test_a_copy_there_and_back_has_the_same_rows(tmp_path: Path, clock: ManualClock) -> None:
    way = [Place(name, tmp_path / f"{number}") for number, name in enumerate(("sqlite", "postgres", "sqlite"))]
    async with way[0].world(clock) as world:
        await live_a_life(world)
    for target in way[1:]:
        await make_empty(target, clock)
    copied(way[:2])
    copied(way[1:])
    first, last = (each.plug.snapshot(each.folder) for each in (way[0], way[2]))
    shared = [table.name for table in TABLES]
    assert {name: last[name] for name in shared} == {name: first[name] for name in shared}
    way[1].plug.leave(way[1].folder)


class Interrupted(Exception):
    """Raised to stop a copy."""


@pytest.mark.parametrize("at", ["ends", "events", "live", "comparing"])
async def test_an_interrupted_copy_goes_on_where_it_stopped(places: list[Place], clock: ManualClock, at: str) -> None:
    async with places[0].world(clock) as world:
        await live_a_life(world)
    await make_empty(places[1], clock)

    def tell(text: str) -> None:
        if text.endswith(at):
            raise Interrupted

    async with places[1].world(clock) as copy:
        with pytest.raises(Interrupted):
            copied(places, tell=tell)
        # Who had it open before is not in time to do anything but harm.
        await copy.worker(id="early")
        assert await copy.claim(5, worker="early") == []
    with places[1].rows() as rows, rows.transaction():
        assert rows.origin() is not None
    with pytest.raises(Conflict, match=r"the workers in .* differ"):
        copied(places)


async def test_a_copy_that_is_not_complete_is_not_opened_and_says_how_to_go_on(
    places: list[Place], clock: ManualClock
) -> None:
    async with places[0].world(clock) as world:
        await live_a_life(world)
    await make_empty(places[1], clock)
    with pytest.raises(Interrupted):
        copied(places, tell=_stop_at("events"))
    with pytest.raises(UnfinishedCopy) as refused:
        async with places[1].world(clock):
            pass
    command = refused.value.fields["command"]
    assert command in refused.value.message
    _, _, verb, source, target = shlex.split(command)
    with places[0].rows() as rows, places[1].rows() as copy:
        assert (verb, source, target) == ("copy", *(_shown(each.place) for each in (rows, copy)))
    copied(places)
    await make_empty(places[1], clock)


def _shown(place: str) -> str:
    return place.replace("PostgreSQL at ", "postgresql://")


async def test_a_copy_that_nobody_touched_is_finished(places: list[Place], clock: ManualClock) -> None:
    async with places[0].world(clock) as world:
        await live_a_life(world)
    await make_empty(places[1], clock)
    for stop in ("tasks", "attempts", "live", "comparing"):
        with pytest.raises(Interrupted):
            copied(places, tell=_stop_at(stop))
    assert copied(places)["tasks"] > 15
    assert not places[1].plug.contradictions(places[1].folder)
    with pytest.raises(Conflict, match="is not empty"):
        copied(places)


def _stop_at(end: str) -> Callable[[str], None]:
    def tell(text: str) -> None:
        if text.endswith(end):
            raise Interrupted

    return tell


async def test_a_store_with_live_attempts_is_not_copied(places: list[Place], clock: ManualClock) -> None:
    async with places[0].world(clock) as world:
        await world.worker()
        await world.lease()
    await make_empty(places[1], clock)
    with pytest.raises(Conflict, match="1 task is being worked on"):
        copied(places)
    with places[1].rows() as rows:
        assert rows.origin() is None


async def test_a_store_that_is_used_is_not_copied_to(places: list[Place], clock: ManualClock) -> None:
    for place in places:
        async with place.world(clock) as world:
            await world.submit()
    with pytest.raises(Conflict, match=r"is not empty \(it has lanes, tasks, live\)"):
        copied(places)


async def test_a_copy_of_another_store_is_not_gone_on_with(
    places: list[Place], clock: ManualClock, tmp_path: Path
) -> None:
    other = Place("sqlite", tmp_path / "other")
    for place in (places[0], other):
        async with place.world(clock) as world:
            await world.submit()
    await make_empty(places[1], clock)
    with pytest.raises(Interrupted):
        copied(places, tell=_stop_at("live"))
    with pytest.raises(Conflict, match="unfinished copy of"):
        copied([other, places[1]])
    with pytest.raises(Conflict, match="is itself a copy"):
        copied([places[1], other])


@pytest.mark.parametrize("when", ["live", "comparing"])
async def test_what_is_written_to_the_source_meanwhile_is_noticed(
    places: list[Place], clock: ManualClock, when: str
) -> None:
    async with places[0].world(clock) as world:
        await world.submit()
        await make_empty(places[1], clock)

        def tell(text: str) -> None:
            if text.endswith(when):
                _run(world.submit())

        async with places[1].world(clock) as copy:
            with pytest.raises(Conflict, match="stop whatever writes to the source"):
                copied(places, tell=tell)
            await copy.worker()
            assert await copy.claim(5) == []


def _run(awaitable: Any) -> None:
    """Stores without threads have done it before anything is awaited."""
    with pytest.raises(StopIteration):
        awaitable.send(None)


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
async def test_every_table_is_copied_or_made_anew(name: str, tmp_path: Path, clock: ManualClock) -> None:
    place = Place(name, tmp_path / "store")
    await make_empty(place, clock)
    with place.rows() as rows:
        assert rows.tables() - {*NOT_COPIED} == {table.name for table in TABLES}
    place.plug.leave(place.folder)


async def test_states_of_a_copy_are_counted(places: list[Place], clock: ManualClock) -> None:
    async with places[0].world(clock) as world:
        await live_a_life(world)
        before = await world.views.queues(ORGANIZATION)
    await make_empty(places[1], clock)
    copied(places)
    async with places[1].world(clock) as copy:
        assert await copy.views.queues(ORGANIZATION) == before
        assert TaskState.DEAD_LETTERED in {
            row.state for row in (await copy.views.tasks(ORGANIZATION, TaskFilter(), 500)).rows
        }
