"""The power goes under a database server: its disk as it was at one instant, the journal replayed, the log read."""

import asyncio
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from chaos.arena import Arena
from chaos.crew import Crew
from chaos.disks import mounted, needs
from chaos.effects import Effects
from chaos.grounds import DURABLE
from chaos.operations import OperationLog
from conformance import postgres_rows
from servers.postgres import PostgresServer

IMAGE_BYTES = 768 * 1024 * 1024
SMALL = {"max_wal_size": "64MB", "min_wal_size": "32MB", "max_connections": "40"}
UNSAFE = {"fsync": "off", "full_page_writes": "off"}
LEASE = 5.0
NAP = {"seconds": 0.3}
"""Longer than it takes to submit one, so that the worker is behind when the power goes."""
LEASE_AFTER_START = 60.0
"""So long after a start of the server nothing is declared lost."""


class Remains(PostgresServer):
    """A server on what is left of another one's data directory."""

    def _fill(self) -> None:
        """The data are there."""


async def power_loss(arena: Arena) -> None:
    """What a server acknowledged before its power went is on its disk, and work goes on from there."""
    needs("mkfs.ext4", "mount", "umount", "cp", root=True)
    rounds = 1 if arena.quick else 4
    kept = 0
    for number in range(rounds):
        kept += await _cut_the_power(arena, DURABLE, drained=number == rounds - 1)
    arena.figure(power_cuts=rounds, acknowledged=kept)
    wrong = len(arena.wrong)
    await _cut_the_power(arena, {**DURABLE, **UNSAFE}, drained=False)
    unsafe, arena.wrong = arena.wrong[wrong:], arena.wrong[:wrong]
    arena.figure(without_fsync="noticed" if unsafe else "not noticed")
    arena.check(unsafe, "a server without fsync passed too: this case shows nothing")


async def _cut_the_power(arena: Arena, settings: dict[str, str], *, drained: bool) -> int:
    """One cut: how many submits were acknowledged before it. `drained`: what is on the disk is run to its end."""
    with _place() as place:
        image, copy = place / "disk", place / "copy"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^metadata_csum_seed", str(image)], check=True)
        log, effects = OperationLog(place / "operations"), place / "effects"
        effects.touch()
        # The journal commits when it is told to, not by itself: what was not synchronized is not on the disk.
        with mounted(place / "before", "-o", "loop,commit=300", str(image)) as disk:
            data = disk / "server"
            data.mkdir(mode=0o755)
            server = PostgresServer(data, **{**SMALL, **settings})
            subprocess.run(["sync", "-f", str(data)], check=True)
            server.start()
            try:
                with Crew(place, server.url("postgres"), effects) as crew:
                    ended = await _write_until_the_cut(arena, crew, log, server)
                    await asyncio.to_thread(_copy, image, copy)
            finally:
                _signal_all(server, signal.SIGCONT)
                server.stop()
        began = time.monotonic()
        with mounted(place / "after", "-o", "loop", str(copy)) as disk:
            acknowledged = {entry["id"] for entry in log.read("answered").values()}
            await _look(arena, disk / "server", acknowledged, ended, place if drained else None)
        arena.recovery = max(arena.recovery or 0.0, time.monotonic() - began)
    return len(acknowledged)


@contextmanager
def _place() -> Iterator[Path]:
    """A folder that `nobody`, whom the server runs as, may go to."""
    place = Path(tempfile.mkdtemp(prefix="chaos-power-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _write_until_the_cut(arena: Arena, crew: Crew, log: OperationLog, server: PostgresServer) -> set[str]:
    """Clients and a worker write; in the middle of that all stand still: what the store then said had ended."""
    worker = crew.worker()
    clients = [
        crew.client(log.path, do="submit", first=first, count=100_000, payload=NAP, options={"lease": LEASE})
        for first in (0, 1_000_000)
    ]
    wanted = 100 + arena.random.randrange(500)
    await arena.until(lambda: len(log.read("answered")) >= wanted, 60, f"{wanted} submits acknowledged")
    for client in clients:
        client.pause()
    ended = await asyncio.to_thread(_ended, server.url("postgres"))
    worker.pause()
    _signal_all(server, signal.SIGSTOP)
    arena.check(ended, "nothing had ended before the cut")
    return ended


def _ended(url: str) -> set[str]:
    """Ids of the tasks whose end is committed."""
    query = "SELECT tasks.id FROM perdure_ends AS ends JOIN perdure_tasks AS tasks USING (n)"
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute(query)}


def _signal_all(server: PostgresServer, number: signal.Signals) -> None:
    if server.running:
        server.signal_all(number)


def _copy(image: Path, copy: Path) -> None:
    subprocess.run(["cp", "--sparse=always", str(image), str(copy)], check=True)


async def _look(arena: Arena, data: Path, acknowledged: set[str], ended: set[str], folder: Path | None) -> None:
    """A server is started on the copy of the disk; with a folder for its log, a worker runs what is there."""
    try:
        server = Remains(data, **{**DURABLE, **SMALL})
        await asyncio.to_thread(server.start)
    except Exception as error:
        arena.check(False, f"no server starts on what is left of the disk: {error}")
        return
    try:
        url = server.url("postgres")
        with psycopg.connect(url) as connection:
            there = {row[0] for row in connection.execute("SELECT id FROM perdure_tasks")}
        lost = acknowledged - there
        arena.check(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged submits are not on the disk")
        undone = ended - _ended(url)
        arena.check(not undone, f"{len(undone)} of {len(ended)} ends that were committed are not on the disk")
        found = await asyncio.to_thread(postgres_rows.contradictions, url)
        arena.wrong.extend(f"rows contradict each other: {fact}" for fact in found[:5])
        if folder is not None:
            await _drain(arena, folder, url, acknowledged)
    except psycopg.Error as error:
        arena.check(False, f"the store cannot be read: {error!r}")
    finally:
        server.stop()


async def _drain(arena: Arena, folder: Path, url: str, acknowledged: set[str]) -> None:
    effects = folder / "effects"
    ran = effects.stat().st_size
    folder = folder / "after-the-cut"
    folder.mkdir()
    with Crew(folder, url, effects) as crew:
        worker = crew.worker(concurrency=100)
        await arena.until(lambda: len(effects.read_bytes()) > ran, 60, "the worker works")
        seconds = LEASE_AFTER_START + LEASE + 30
        await arena.until(lambda: acknowledged <= _ended(url), seconds, "every acknowledged task ended after the cut")
        arena.check(worker.end() == 0, f"the worker ended with {worker.code}: {worker.last_words()}")
    told = Effects(effects)
    bare = acknowledged - told.by_task("end").keys()
    told.close()
    arena.check(not bare, f"{len(bare)} tasks ended and no handler came to its end")
