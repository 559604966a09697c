"""What was acknowledged outlives the server: on a standby that takes over, and on a restored backup. Fences grow."""

import asyncio
import contextlib
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from conformance.making import DONE, ORGANIZATION, RESULT, World, settling
from conformance.stores import STORES, ManualClock
from perdure.domain import limits
from perdure.domain.limits import SECOND_US
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.errors import Unavailable
from perdure.store.ledger import SettleAnswer
from perdure.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from servers.postgres import PostgresServer

DATABASE = "shop"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that servers may reach, whoever they run as."""
    made = Path(tempfile.mkdtemp(prefix="perdure-copies-"))
    made.chmod(0o777)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def alive(server: "PostgresServer") -> Iterator["PostgresServer"]:
    """The server, stopped at the end whatever happens."""
    try:
        yield server
    finally:
        server.stop()


def place(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    made.chmod(0o755)
    return made


def make_database(server: "PostgresServer") -> None:
    """Make it without waiting for a standby, which may not be there yet."""
    with psycopg.connect(server.url("postgres"), autocommit=True, options="-c synchronous_commit=local") as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")


@contextlib.asynccontextmanager
async def opened(url: str, clock: ManualClock) -> AsyncIterator[World]:
    """A store there, in the test's time."""
    store = await PostgresStore.open(url, clock=clock, inline=True)
    try:
        yield World(store, clock, STORES["postgres"], Path())
    finally:
        await store.close()


async def states(world: World, ids: list[str]) -> list[TaskState | None]:
    """How the tasks stand; `None` for those that are not there."""
    views = [await world.views.task(ORGANIZATION, id) for id in ids]
    return [None if view is None else view.state for view in views]


async def test_a_standby_takes_over_with_everything_that_was_acknowledged(folder: Path) -> None:
    from servers.copies import FOLLOWER, Standby
    from servers.postgres import PostgresServer

    primary = PostgresServer(place(folder, "primary"), synchronous_standby_names=FOLLOWER)
    with alive(primary):
        primary.start()
        make_database(primary)
        standby = Standby(place(folder, "standby"), primary)
        with alive(standby):
            standby.start()
            both = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            clock = ManualClock()
            async with opened(f"postgresql://postgres@{both}/{DATABASE}", clock) as world:
                await world.worker()
                ids = [await world.submit() for _ in range(8)]
                first = await world.claim(3)
                await world.finish(*first)
                # A claim waits for no standby: this one never gets there.
                standby.stop(signal.SIGINT)
                lost = await world.claim_one()

                primary.stop(signal.SIGQUIT)
                standby.start()
                standby.promote()
                clock.advance(SECOND_US)

                done, queued = TaskState.SUCCEEDED, TaskState.QUEUED
                assert await states(world, ids) == [done] * 3 + [queued] * 5
                view = await world.views.task(ORGANIZATION, ids[0])
                assert view is not None
                assert view.result == RESULT
                # One claim may come before the one that nobody remembers; it is not passed over for longer.
                again = {lease.hold.task_id: lease for lease in await world.claim(5)}
                assert set(again) == set(ids[3:])
                assert again[lost.hold.task_id].fence > lost.fence
                assert (await world.settle(lost, DONE)).answer == SettleAnswer.LEASE_LOST
                await world.finish(*again.values())
                # Nobody can say how long there was no server: nothing is lost for a while.
                assert (
                    await world.ledger.losses_suspended_until() >= clock.wall_us() + limits.LEASE_DEFAULT_US - SECOND_US
                )


class Rush:
    """Submits, claims and settles without a pause, and notes what was acknowledged."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stopped = False
        self._target = 0
        self._reached = asyncio.Event()
        self.submitted: list[str] = []
        self.settled: set[str] = set()
        self.fences: dict[str, list[int]] = {}

    async def submit(self) -> None:
        while not self._stopped:
            with contextlib.suppress(Unavailable):
                self.submitted.append(await self._world.submit())

    async def work(self) -> None:
        while not self._stopped:
            with contextlib.suppress(Unavailable):
                leases = await self._world.claim(3)
                for lease in leases:
                    self.fences.setdefault(lease.hold.task_id, []).append(lease.fence)
                answers = await self._world.ledger.settle([settling(lease, DONE) for lease in leases])
                for lease, answer in zip(leases, answers, strict=True):
                    if answer.answer in (SettleAnswer.APPLIED, SettleAnswer.REPLAYED):
                        self.settled.add(lease.hold.task_id)
            if len(self.settled) >= self._target:
                self._reached.set()

    async def go_on_for(self, settled: int) -> None:
        """Return when so many more have been settled."""
        self._target = len(self.settled) + settled
        self._reached.clear()
        async with asyncio.timeout(60):
            await self._reached.wait()

    def stop(self) -> None:
        self._stopped = True


async def test_work_goes_on_while_a_standby_takes_over(folder: Path) -> None:
    from servers.copies import FOLLOWER, Standby
    from servers.postgres import PostgresServer

    primary = PostgresServer(place(folder, "primary"), synchronous_standby_names=FOLLOWER)
    with alive(primary):
        primary.start()
        make_database(primary)
        standby = Standby(place(folder, "standby"), primary)
        with alive(standby):
            standby.start()
            both = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            store = await PostgresStore.open(f"postgresql://postgres@{both}/{DATABASE}")
            try:
                world = World(store, ManualClock(), STORES["postgres"], Path())
                await world.worker()
                rush = Rush(world)
                async with asyncio.TaskGroup() as group:
                    for each in (rush.submit, rush.submit, rush.work):
                        group.create_task(each())
                    await rush.go_on_for(30)
                    await asyncio.to_thread(primary.stop, signal.SIGQUIT)
                    await asyncio.to_thread(standby.promote)
                    await rush.go_on_for(30)
                    rush.stop()
                assert None not in await states(world, rush.submitted)
                ended = await world.views.ended(ORGANIZATION, sorted(rush.settled))
                assert {each.id for each in ended if each.state == TaskState.SUCCEEDED} == rush.settled
                assert all(fences == sorted(set(fences)) for fences in rush.fences.values())
            finally:
                await store.close()


async def test_a_backup_is_restored_to_a_point_in_time_and_fences_stay_ahead(folder: Path) -> None:
    from servers.copies import Restored
    from servers.postgres import PostgresServer

    archive = place(folder, "archive")
    archive.chmod(0o777)
    source = PostgresServer(place(folder, "source"), archive_mode="on", archive_command=f"cp %p {archive}/%f")
    clock = ManualClock()
    with alive(source):
        source.start()
        make_database(source)
        async with opened(source.url(DATABASE), clock) as world:
            await world.worker()
            before = [await world.submit() for _ in range(3)]
            restored = Restored(place(folder, "restored"), source)
            after_backup = [await world.submit() for _ in range(3)]
            held = await world.claim_one()
            with psycopg.connect(source.url(DATABASE), autocommit=True) as connection:
                connection.execute("SELECT pg_create_restore_point('before_the_mistake')")
            clock.advance(SECOND_US)
            await world.finish(held, settlement=Settlement.handed_back())
            later = await world.claim_one()
            assert later.hold.task_id == held.hold.task_id
            mistaken = await world.submit()
        source.stop(signal.SIGINT)

    with alive(restored):
        restored.replay(archive, "before_the_mistake")
        clock.advance(SECOND_US)
        async with opened(restored.url(DATABASE), clock) as world:
            found = await states(world, [*before, *after_backup, mistaken])
            assert found == [TaskState.LEASED] + [TaskState.QUEUED] * 5 + [None]
            await world.finish(held, settlement=Settlement.handed_back())
            again = await world.claim_one()
            assert again.hold.task_id == later.hold.task_id
            # What the lost future showed to others is behind.
            assert again.fence > later.fence
