"""Cases in which the disk under a database server fails: it is full, it does not take what it is told to keep."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


async def fsync_fails(arena: Arena) -> None:
    """Every fsync of the server answers EIO for a while: it ends itself rather than acknowledge what may be lost."""
    needs("strace")
    ground = arena.ground
    assert isinstance(ground, PostgresGround)
    worker = arena.crew.worker()
    client = arena.crew.client(arena.log.path, do="submit", first=0, count=100_000, patient=True, pause=0.01)
    rounds = 1 if arena.quick else 3
    injected = restarts = 0
    for _ in range(rounds):
        known = len(arena.log.read("answered"))
        await arena.until(lambda known=known: len(arena.log.read("answered")) > known + 50, 60, "fifty submits more")
        injected += await _fail_fsync(arena, ground.server)
        restarts += await asyncio.to_thread(_start_if_ended, ground.server)
    arena.check(injected, "no fsync failed")
    arena.check(set(arena.log.refusals()) <= BROKEN, f"the refusals are {arena.log.refusals()}")
    known = len(arena.log.read("answered"))
    healed = time.monotonic()
    await arena.until(lambda: len(arena.log.read("answered")) > known, 60, "a submit acknowledged again")
    _still_there(arena, client, worker)
    client.kill()
    await arena.all_ended(90)
    arena.recovered(time.monotonic() - healed, 60)
    arena.figure(failed=injected, rounds=rounds, server_had_ended=restarts, **arena.log.refusals())
    arena.figure(acknowledged=len(arena.log.read("answered")))
    await arena.judge(claims_undone=True)


def _still_there(arena: Arena, *members: Member) -> None:
    for member in members:
        arena.check(member.code is None, f"a process ended with its server: {member.last_words()}")


async def _fail_fsync(arena: Arena, server: PostgresServer) -> int:
    """Let every fsync of the processes that run fail until one of them has noticed: how many did."""
    trace = arena.folder / f"trace-{time.monotonic_ns()}"
    # Only what runs now: whoever starts the server again has a disk that works.
    command = ["strace", "-qq", "-o", str(trace), "-e", "trace=fdatasync,fsync"]
    command += ["-e", "inject=fdatasync,fsync:error=EIO:when=1+"]
    for pid in server.pids():
        command += ["-p", str(pid)]
    panics = _panics(server)
    tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        await arena.until(
            lambda: _panics(server) > panics or tracer.poll() is not None, 60, "the server notices that fsync failed"
        )
    finally:
        tracer.send_signal(signal.SIGINT)
        _, said = tracer.communicate()
    if "ptrace" in said and not trace.exists():
        raise NotRun("needs a machine where strace may trace")
    return trace.read_text().count("INJECTED")


def _panics(server: PostgresServer) -> int:
    return sum("PANIC:" in line for line in list(server.lines))
