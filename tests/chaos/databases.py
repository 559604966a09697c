"""Cases in which the database server is at fault: it restarts, it cannot be reached, it refuses, it forgets."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg

from chaos import faults
from chaos.arena import Arena
from chaos.crew import Member
from chaos.grounds import PostgresGround
from perdure.cli.problems import NO_STORE

LEASE = 5.0
POLL = 2.0
FEW_CONNECTIONS = {"max_connections": "25"}
CROWDED = "has no connection left"
SNAPSHOT_KEEPS = 0.8
"""How much of its pace a drain must keep while an old snapshot is held."""
SNAPSHOT_KEEPS_QUICK = 0.2
"""The same where few tasks are drained on a busy machine: it goes on."""
WAKING_SPARE, WAKING_SPARE_QUICK = 0.5, 8.0
"""Seconds beyond one and a half polls in which a task must start whose wake-up was lost."""


def _ground(arena: Arena) -> PostgresGround:
    assert isinstance(arena.ground, PostgresGround)
    return arena.ground


def _clients(arena: Arena, count: int, *, at: str | None = None, pause: float = 0.01) -> list[Member]:
    """Clients that submit one task after the other and put up with refusals."""
    return [
        arena.crew.client(
            arena.log.path,
            at=at,
            do="submit",
            first=number * 100_000,
            count=100_000,
            patient=True,
            pause=pause,
            options={"lease": LEASE},
            payload={"seconds": 0.1},
        )
        for number in range(count)
    ]


async def restarts(arena: Arena) -> None:
    """The server is stopped at once and started again, time after time, under load."""
    times = 3 if arena.quick else 6
    ground = _ground(arena)
    workers = [arena.crew.worker() for _ in range(2)]
    clients = _clients(arena, 2)
    await arena.until(lambda: arena.effects.count("end") >= 20, 60, "work is done before the first restart")
    for _ in range(times):
        await asyncio.sleep(arena.random.uniform(0.5, 2.0) if arena.quick else arena.random.uniform(5.0, 12.0))
        await asyncio.to_thread(ground.crash)
    await asyncio.sleep(1.0)
    for client in clients:
        client.kill()
    healed = time.monotonic()
    await arena.all_ended(LEASE + 60)
    arena.recovered(time.monotonic() - healed, LEASE + 30)
    arena.check(all(each.code is None for each in workers), "a worker ended because its server was away")
    arena.figure(restarts=times, tasks=len(await arena.tasks()))
    await arena.judge(claims_undone=True)


async def black_hole(arena: Arena) -> None:
    """Nothing passes between one worker and the server for longer than a lease; then everything does again."""
    hole = 2 * LEASE
    ids = await arena.submit("nap", range(60), payload={"seconds": 0.4}, lease=LEASE)
    async with _link(_ground(arena)) as link:
        cut_off = arena.crew.worker(at=link.url, concurrency=10)
        await arena.until(lambda: arena.effects.count("end") >= 10, 60, "the worker works")
        link.passing.clear()
        began = time.monotonic()
        healthy = arena.crew.worker(concurrency=10)
        await arena.all_ended(LEASE + 60)
        arena.recovered(time.monotonic() - began, LEASE + 20)
        await asyncio.sleep(max(0.0, hole - (time.monotonic() - began)))
        link.passing.set()
        more = await arena.submit("nap", range(100, 160), payload={"seconds": 0.1}, lease=LEASE)
        await arena.all_ended(60)
        arena.check(cut_off.code is None, f"the worker that was cut off ended with {cut_off.code}")
        arena.check(healthy.end() == 0, f"the healthy worker ended with {healthy.code}")
        await arena.submit("nap", range(200, 210), payload={"seconds": 0.1}, lease=LEASE)
        await arena.all_ended(60)
        cut_off.kill()
    arena.figure(hole=hole, tasks=len(ids) + len(more) + 10)
    await arena.judge()


class _Link:
    """A way to the server that can be closed for a while, as a network that drops everything."""

    def __init__(self, ground: PostgresGround) -> None:
        self._port = ground.server.port
        self.passing = asyncio.Event()
        self.passing.set()
        self.url = ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay both ways until one end closes."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ways = [asyncio.create_task(self._relay(*way)) for way in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (back, writer):
                end.close()

    async def _relay(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65_536):
                await self.passing.wait()
                target.write(data)
                await target.drain()


@contextlib.asynccontextmanager
async def _link(ground: PostgresGround) -> AsyncIterator[_Link]:
    link = _Link(ground)
    server = await asyncio.start_server(link.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    link.url = ground.store.replace(f":{ground.server.port}/", f":{port}/")
    try:
        yield link
    finally:
        server.close()


async def wake_ups_lost(arena: Arena) -> None:
    """The sessions that listen are ended again and again, just before something is submitted."""
    probes = 8 if arena.quick else 40
    worker = arena.crew.worker(poll=POLL)
    await arena.submit("nap", range(1))
    await arena.all_ended(60)
    taken: list[float] = []
    ended = 0
    for number in range(1, probes + 1):
        ended += await asyncio.to_thread(_end_listeners, arena.ground.store)
        began = time.monotonic()
        await arena.submit("nap", range(number, number + 1))
        await arena.until(lambda: arena.effects.count("start") > number, 30, f"probe {number} has started")  # noqa: B023
        taken.append(time.monotonic() - began)
    worst = max(taken)
    bound = 1.5 * POLL + (WAKING_SPARE_QUICK if arena.quick else WAKING_SPARE)
    arena.check(worst <= bound, f"a task started after {worst:.2f} s, promised are {bound:g} s")
    arena.check(ended, "no listening session was found")
    arena.check(worker.end() == 0, f"the worker ended with {worker.code}")
    arena.figure(listeners_ended=ended, start_worst=worst, start_median=sorted(taken)[len(taken) // 2])
    await arena.judge()


def _end_listeners(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        query = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE query ~ '(LISTEN|pg_notify)' AND application_name = 'perdure' AND pid <> pg_backend_pid()
        """
        return len(connection.execute(query).fetchall())


async def old_snapshot(arena: Arena) -> None:
    """A reader keeps its snapshot while tasks come and go: the drain keeps its pace."""
    tasks, churned = (1_000, 3_000) if arena.quick else (8_000, 60_000)
    worker = arena.crew.worker(concurrency=100)
    await _drain(arena, 0, tasks)
    fresh = tasks / await _drain(arena, tasks, tasks)
    with psycopg.connect(arena.ground.store) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM perdure_tasks").fetchone()
        for done in range(0, churned, tasks):
            await _drain(arena, 2 * tasks + done, tasks)
        old = tasks / await _drain(arena, 2 * tasks + churned, tasks)
    kept = old / fresh
    arena.figure(fresh_per_second=round(fresh), old_per_second=round(old), kept=kept, churned=churned)
    bound = SNAPSHOT_KEEPS_QUICK if arena.quick else SNAPSHOT_KEEPS
    arena.check(kept > bound, f"the drain keeps {kept:.2f} of its pace, promised are {bound:g}")
    worker.end()


async def _drain(arena: Arena, first: int, count: int) -> float:
    """Seconds in which so many tasks are submitted and run."""
    began = time.monotonic()
    for start in range(first, first + count, 1_000):
        numbers = range(start, min(start + 1_000, first + count))
        await arena.app.submit_many([arena.app.call("nap", payload={"number": n}) for n in numbers])
    await arena.all_ended(120)
    return time.monotonic() - began


async def storm(arena: Arena) -> None:
    """One in five transactions collides with another, deadlocks, or loses its connection at the commit."""
    rate = {faults.STORM: "0.2"}
    tasks = 60 if arena.quick else 600
    workers = [arena.crew.worker(environ=rate) for _ in range(2)]
    client = arena.crew.client(
        arena.log.path,
        environ=rate,
        do="submit",
        first=0,
        count=tasks,
        patient=True,
        options={"lease": LEASE, "max_losses": 100},
    )
    ids: list[Any] = []
    for number in range(5 if arena.quick else 40):
        with arena.app.job(f"family {number}") as job:
            top = job.add("nap", number=number, lease=LEASE, max_losses=100)
            for child in range(3):
                job.add("busy", number=1_000 * number + child, after=[top], lease=LEASE, max_losses=100)
        ids.append((await job.submit()).id)
    arena.check(await asyncio.to_thread(client.wait, 100) == 0, f"the client ended with {client.code}")
    await arena.all_ended(120)
    for each in workers:
        arena.check(each.code is None, f"a worker ended with {each.code}")
    arena.figure(tasks=len(await arena.tasks()), jobs=len(ids))
    await arena.judge()


async def few_connections(arena: Arena) -> None:
    """More workers than the server has connections for: who gets in works, who cannot even begin says so and ends."""
    ids = await arena.submit("nap", range(200), payload={"seconds": 0.05}, lease=LEASE)
    workers = [arena.crew.worker(concurrency=4) for _ in range(6 if arena.quick else 12)]
    await arena.all_ended(90)
    await asyncio.sleep(1.0)
    short = [each for each in workers if CROWDED in each.log.read_text()]
    # Six workers may just find room: most connections are opened when they are needed.
    arena.check(arena.quick or short, "no worker said that it lacked a connection")
    turned_away = [each for each in workers if each.code is not None]
    for each in turned_away:
        said = [line for line in each.log.read_text().splitlines() if line.startswith("perdure: ")]
        clear = each.code == NO_STORE and len(said) == 1 and CROWDED in said[0]
        arena.check(clear, f"a worker that was turned away ended with {each.code}: {each.last_words()}")
    for each in workers:
        each.kill()
    later = arena.crew.worker(concurrency=4)
    await arena.submit("nap", range(1_000, 1_020), lease=LEASE)
    await arena.all_ended(60)
    arena.check(later.end() == 0, f"a worker ended with {later.code}")
    arena.figure(tasks=len(ids), workers=len(workers), short=len(short), turned_away=len(turned_away))
    await arena.judge()
