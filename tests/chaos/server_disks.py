"""Cases in which the disk under a database server fails: it is full, it does not take what it is told to keep."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psycopg

from chaos.arena import Arena, NotRun
from chaos.crew import Crew, Member
from chaos.disks import all_ran, mounted, needs
from chaos.grounds import DURABLE, PostgresGround
from chaos.operations import OperationLog
from conformance import postgres_rows
from servers.postgres import PostgresServer

SMALL_DISK = "400m"
ROOM_BYTES = 128 * 1024
"""What is left of the disk once it is full: less than a table grows by at a time."""
FULL = {"store_full", "store_failed", "store_unreachable", "store_busy"}
"""What a client may be told: a server that cannot write its log ends, and comes back when it can."""
BROKEN = {"store_failed", "store_unreachable", "store_busy"}
ATTACHES_SECONDS = 0.5
BROKEN_SECONDS = 6.0
"""How long a disk stays broken under whatever the server starts."""


@contextmanager
def _server(folder: Path) -> Iterator[PostgresServer]:
    folder.mkdir()
    folder.chmod(0o755)
    server = PostgresServer(folder, **{**DURABLE, "max_wal_size": "48MB", "min_wal_size": "32MB"})
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def disk_full(arena: Arena) -> None:
    """The disk of a server runs full under load, and is given room again."""
    needs("mount", "umount", root=True)
    place = Path(tempfile.mkdtemp(prefix="chaos-disk-"))
    place.chmod(0o755)
    try:
        with (
            mounted(place / "small", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs") as small,
            _server(small / "server") as server,
        ):
            effects = arena.folder / "small-effects"
            effects.touch()
            folder = arena.folder / "small-crew"
            folder.mkdir()
            with Crew(folder, server.url("postgres"), effects) as crew:
                await _fill_and_free(arena, crew, small / "ballast", server)
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _fill_and_free(arena: Arena, crew: Crew, ballast: Path, server: PostgresServer) -> None:
    log = OperationLog(arena.folder / "small-operations")
    worker = crew.worker(concurrency=5)
    client = crew.client(log.path, do="submit", first=0, count=100_000, filling=8_000, patient=True, pause=0.005)
    await arena.until(lambda: crew.effects.read_bytes().count(b"end") >= 20, 60, "the worker works")
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(ballast.parent).free - ROOM_BYTES)
    await arena.until(lambda: sum(log.refusals().values()) >= 20, 60, "twenty refusals")
    refusals = log.refusals()
    arena.check(set(refusals) <= FULL, f"the refusals are {refusals}")
    arena.check(client.code is None and worker.code is None, "a process ended because the server's disk is full")
    before = len(log.read("answered"))
    freed = time.monotonic()
    ballast.unlink()
    again = await asyncio.to_thread(_start_if_ended, server)
    await arena.until(lambda: len(log.read("answered")) > before, 60, "a submit acknowledged again")
    resumed = time.monotonic() - freed
    await asyncio.sleep(1.0)
    client.kill()
    await all_ran(arena, crew, log, freed, lambda: postgres_rows.contradictions(crew.store))
    arena.figure(acknowledged_before=before, **refusals, resumed_after=resumed, server_had_ended=again)
    arena.check(worker.end() == 0, f"the worker ended with {worker.code}: {worker.last_words()}")


def _start_if_ended(server: PostgresServer) -> bool:
    """Start a server that has ended itself, as whoever looks after it would; whether it had."""
    if server.running:
        return False
    server.stop()
    server.start()
    return True


def _start_again(server: PostgresServer) -> bool:
    """Start a server again that may have ended, or waits for somebody to end it because its recovery has failed."""
    server.stop()
    server.start()
    return True


async def fsync_fails(arena: Arena) -> None:
    """Fsyncs of the server answer EIO: it ends itself rather than acknowledge what may be lost.

    At first those of all its processes do until one has noticed, then those of its data files at a checkpoint, at last
    those of every process that it starts for a while.
    """
    needs("strace")
    ground = arena.ground
    assert isinstance(ground, PostgresGround)
    server = ground.server
    # What it says is counted, however much that is.
    server.lines = deque()
    worker = arena.crew.worker()
    client = arena.crew.client(arena.log.path, do="submit", first=0, count=100_000, patient=True, pause=0.01)
    ways = (_all_at_once,) if arena.quick else (_all_at_once, _data_files, _as_long_as_it_lasts)
    restarts = 0
    for way in ways:
        known = len(arena.log.read("answered"))
        await arena.until(lambda known=known: len(arena.log.read("answered")) > known + 50, 60, "fifty submits more")
        arena.figure(**{f"failed{way.__name__}": await way(arena, server)})
        restarts += await asyncio.to_thread(_start_again if way is _as_long_as_it_lasts else _start_if_ended, server)
    arena.check(set(arena.log.refusals()) <= BROKEN, f"the refusals are {arena.log.refusals()}")
    known = len(arena.log.read("answered"))
    healed = time.monotonic()
    await arena.until(lambda: len(arena.log.read("answered")) > known, 60, "a submit acknowledged again")
    _still_there(arena, client, worker)
    client.kill()
    await arena.all_ended(90)
    arena.recovered(time.monotonic() - healed, 60)
    arena.figure(server_had_ended=restarts, **arena.log.refusals(), acknowledged=len(arena.log.read("answered")))
    await arena.judge(claims_undone=True)


async def _all_at_once(arena: Arena, server: PostgresServer) -> int:
    async with _failing(arena, server, server.pids()) as trace:
        pass
    return _injected(arena, trace)


async def _data_files(arena: Arena, server: PostgresServer) -> int:
    """The log is kept, what a checkpoint writes is not: it comes back from the log."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        pids = [row[0] for row in admin.execute(query)]
        async with _failing(arena, server, pids) as trace:
            with contextlib.suppress(psycopg.OperationalError):
                await asyncio.to_thread(admin.execute, "CHECKPOINT")
    return _injected(arena, trace)


async def _as_long_as_it_lasts(arena: Arena, server: PostgresServer) -> int:
    """What the server starts to recover meets the same disk; meanwhile nothing is acknowledged."""
    async with _failing(arena, server, server.pids(), "-f") as trace:
        # What had its fsync before is still told.
        await asyncio.sleep(1.0)
        known = set(arena.log.read("answered"))
        await asyncio.sleep(BROKEN_SECONDS)
        bare = set(arena.log.read("answered")) - known
        arena.check(not bare, f"{len(bare)} submits were acknowledged on a disk that kept nothing")
    return _injected(arena, trace)


def _still_there(arena: Arena, *members: Member) -> None:
    for member in members:
        arena.check(member.code is None, f"a process ended with its server: {member.last_words()}")


@asynccontextmanager
async def _failing(arena: Arena, server: PostgresServer, pids: list[int], *options: str) -> AsyncIterator[Path]:
    """Let every fsync of some processes fail, until one of them has noticed and the block is over: the trace."""
    trace = arena.folder / f"trace-{time.monotonic_ns()}"
    command = ["strace", "-qq", *options, "-o", str(trace), "-e", "trace=fdatasync,fsync"]
    command += ["-e", "inject=fdatasync,fsync:error=EIO:when=1+"]
    for pid in pids:
        command += ["-p", str(pid)]
    panics = _panics(server)
    tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        await arena.until(lambda: trace.exists() or tracer.poll() is not None, 30, "strace has begun")
        await asyncio.sleep(ATTACHES_SECONDS)
        yield trace
        await arena.until(
            lambda: _panics(server) > panics or tracer.poll() is not None, 60, "the server notices that fsync failed"
        )
    finally:
        tracer.send_signal(signal.SIGINT)
        _, said = tracer.communicate()
    if "ptrace" in said and not trace.exists():
        raise NotRun("needs a machine where strace may trace")


def _injected(arena: Arena, trace: Path) -> int:
    count = trace.read_text().count("INJECTED") if trace.exists() else 0
    arena.check(count, "no fsync failed")
    return count


def _panics(server: PostgresServer) -> int:
    return sum("PANIC:" in line for line in list(server.lines))
