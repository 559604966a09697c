"""Cases in which the disk fails: the power goes, it is full, it does not take what it is told to keep."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from chaos import faults
from chaos.arena import Arena, NotRun
from chaos.crew import Crew
from chaos.effects import Effects
from chaos.operations import OperationLog
from conformance.sqlite_rows import contradictions, tables

IMAGE_BYTES = 64 * 1024 * 1024
FULL_DISK_BYTES = 16 * 1024 * 1024
BALLAST_BYTES = 8 * 1024 * 1024


def needs(*programs: str, root: bool = False) -> None:
    """Raises `NotRun` where a program, or the right to mount, is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise NotRun(f"needs {', '.join(missing)}")
    if root and os.geteuid() != 0:
        raise NotRun("needs root, to mount a disk of its own")


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[Path]:
    """A disk at this folder. Raises `NotRun`."""
    folder.mkdir()
    done = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        folder.rmdir()
        raise NotRun(f"needs a kernel that mounts ({done.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=False) if _unmounts(folder) else None


def _unmounts(folder: Path) -> bool:
    """Unmount at once where possible; otherwise when nobody uses it any more."""
    return subprocess.run(["umount", "--lazy", str(folder)], check=False).returncode != 0


async def power_loss(arena: Arena) -> None:
    """The disk as it was at one instant of writing, its journal replayed: every acknowledged submit is on it."""
    needs("mkfs.ext4", "mount", "umount", root=True)
    rounds = 1 if arena.quick else 8
    kept = 0
    for number in range(rounds):
        kept += await _cut_the_power(arena, number, {})
    arena.figure(power_cuts=rounds, acknowledged=kept)
    wrong = len(arena.wrong)
    await _cut_the_power(arena, rounds, {faults.SYNCHRONOUS: "OFF"})
    unsafe, arena.wrong = arena.wrong[wrong:], arena.wrong[:wrong]
    arena.figure(without_fsync="noticed" if unsafe else "not noticed")
    arena.check(unsafe, "a store without fsync passed too: this case shows nothing")


async def _cut_the_power(arena: Arena, number: int, environ: dict[str, str]) -> int:
    folder = arena.folder / f"cut-{number}"
    folder.mkdir()
    image, copy = folder / "disk", folder / "copy"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^metadata_csum_seed", str(image)], check=True)
    log = OperationLog(folder / "operations")
    # The journal commits when it is told to, not by itself: what was not synchronized is not on the disk.
    with mounted(folder / "mounted", "-o", "loop,commit=300", str(image)) as disk:
        acknowledged = await _write_until_the_cut(
            arena, folder, disk, log, environ, lambda: shutil.copyfile(image, copy)
        )
    began = time.monotonic()
    with mounted(folder / "after", "-o", "loop", str(copy)) as after:
        await asyncio.to_thread(_look_at, arena, after / "perdure.db", acknowledged)
    arena.recovery = max(arena.recovery or 0.0, time.monotonic() - began)
    image.unlink()
    copy.unlink()
    return len(acknowledged)


async def _write_until_the_cut(
    arena: Arena,
    folder: Path,
    mounted: Path,
    log: OperationLog,
    environ: dict[str, str],
    cut: Callable[[], object],
) -> dict[str, dict[str, str]]:
    """A client and a worker write; in the middle of that they stand still, and the disk is taken as it is."""
    (folder / "effects").touch()
    with Crew(folder, mounted / "perdure.db", folder / "effects") as crew:
        writer = crew.client(log.path, environ=environ, do="submit", first=0, count=100_000)
        wanted = 30 + arena.random.randrange(200)
        await arena.until(lambda: len(log.read("answered")) >= 10, 60, "ten submits acknowledged")
        worker = crew.worker(environ=environ)
        await arena.until(lambda: len(log.read("answered")) >= wanted, 60, f"{wanted} submits acknowledged")
        writer.pause()
        worker.pause()
        acknowledged = log.read("answered")
        await asyncio.to_thread(cut)
    return acknowledged


def _look_at(arena: Arena, path: Path, acknowledged: dict[str, dict[str, str]]) -> None:
    if not path.exists():
        arena.check(False, "the store is not on the disk")
        return
    try:
        connection = apsw.Connection(str(path))
        [[verdict]] = connection.execute("PRAGMA integrity_check")
        arena.check(verdict == "ok", f"integrity_check says {verdict}")
        table = next(name for name in tables(connection) if name.endswith("tasks"))
        there = {row[0] for row in connection.execute(f"SELECT id FROM {table}")}
        connection.close()
    except (apsw.Error, StopIteration) as error:
        arena.check(False, f"the store cannot be read: {error!r}")
        return
    lost = {entry["id"] for entry in acknowledged.values()} - there
    arena.check(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged submits are not on the disk")
    arena.wrong.extend(f"rows contradict each other: {fact}" for fact in contradictions(path)[:5])


async def disk_full(arena: Arena) -> None:
    """A disk of a few megabytes runs full under load, and is given room again."""
    needs("mount", "umount", root=True)
    with mounted(arena.folder / "small", "-t", "tmpfs", "-o", f"size={FULL_DISK_BYTES}", "tmpfs") as small:
        ballast = small / "ballast"
        ballast.write_bytes(b"\0" * BALLAST_BYTES)
        log = OperationLog(arena.folder / "small-operations")
        effects = arena.folder / "small-effects"
        effects.touch()
        with Crew(arena.folder / "small-crew", small / "perdure.db", effects) as crew:
            await _fill_and_free(arena, crew, log, ballast)


async def _fill_and_free(arena: Arena, crew: Crew, log: OperationLog, ballast: Path) -> None:
    crew.folder.mkdir()
    orders = {"do": "submit", "first": 0, "count": 600, "filling": 8_000, "patient": True, "pause": 0.0}
    first = crew.client(log.path, do="submit", first=0, count=1)
    arena.check(await asyncio.to_thread(first.wait, 60) == 0, "the first submit was not taken")
    worker = crew.worker(concurrency=5)
    await arena.until(lambda: crew.effects.read_bytes().count(b"end") >= 1, 60, "the worker works")
    client = crew.client(log.path, **orders)
    await arena.until(lambda: sum(log.refusals().values()) >= 20, 60, "twenty refusals")
    arena.check(set(log.refusals()) == {"store_full"}, f"the refusals are {log.refusals()}")
    arena.check(client.code is None and worker.code is None, "a process ended because the disk is full")
    before = len(log.read("answered"))
    freed = time.monotonic()
    ballast.unlink()
    await arena.until(lambda: len(log.read("answered")) > before, 60, "a submit acknowledged again")
    resumed = time.monotonic() - freed
    code = await asyncio.to_thread(client.wait, 60)
    arena.check(code == 0, f"the client ended with {code}")
    await _all_ran(arena, crew, log, freed)
    arena.figure(acknowledged_before=before, refusals=log.refusals().get("store_full", 0), resumed_after=resumed)
    arena.check(worker.end() == 0, f"the worker ended with {worker.code}")


async def _all_ran(arena: Arena, crew: Crew, log: OperationLog, since: float) -> None:
    """Every acknowledged task has run to its end, and the rows agree."""
    await all_ran(arena, crew, log, since, lambda: contradictions(Path(crew.store)))


async def all_ran(arena: Arena, crew: Crew, log: OperationLog, since: float, look: Callable[[], Sequence[str]]) -> None:
    """The same for a store whose rows `look` holds against each other."""
    effects = Effects(crew.effects)
    ids = {entry["id"] for entry in log.read("answered").values()}
    await arena.until(lambda: ids <= effects.by_task("end").keys(), 60, "every acknowledged task ran")
    arena.recovered(time.monotonic() - since, 30)
    effects.close()
    arena.wrong.extend(f"rows contradict each other: {fact}" for fact in look()[:5])


async def fsync_fails(arena: Arena) -> None:
    """Every fsync answers EIO from some instant on; then one of them alone does."""
    needs("strace")
    probe = subprocess.run(["strace", "-f", "-e", "trace=none", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        raise NotRun("needs a machine where strace may trace")
    for which in ("25+",) if arena.quick else ("25+", "30"):
        await _fail_fsync(arena, which)


async def _fail_fsync(arena: Arena, which: str) -> None:
    folder = arena.folder / f"fsync-{which}"
    folder.mkdir()
    (folder / "effects").touch()
    log, trace = OperationLog(folder / "operations"), folder / "trace"
    prefix = ["strace", "-f", "-qq", "-ttt", "-o", str(trace), "-e", "trace=fdatasync,fsync"]
    prefix += ["-e", f"inject=fdatasync,fsync:error=EIO:when={which}"]
    with Crew(folder, folder / "perdure.db", folder / "effects") as crew:
        client = crew.client(log.path, prefix=prefix, do="submit", first=0, count=60)
        code = await asyncio.to_thread(client.wait, 90)
        arena.check(code == 0, f"the client under strace ended with {code}: {client.last_words()}")
        answered, refusals = log.read("answered"), log.refusals()
        arena.check(answered, "nothing was acknowledged before the fault")
        arena.check("store_failed" in refusals, f"no failed fsync was told: {refusals}")
        arena.check(set(refusals) <= {"store_failed", "store_busy"}, f"the refusals are {refusals}")
        failed = [line for line in trace.read_text().splitlines() if "INJECTED" in line]
        arena.check(failed, "no fsync failed")
        if which.endswith("+"):
            # The fault counts for each thread by itself, and a commit may be on either of two.
            behind = time.time() - time.monotonic()
            lines = trace.read_text().splitlines()
            done = [float(line.split()[1]) - behind for line in lines if line.endswith(" = 0")]
            asked = log.read("asked")
            bare = [
                key
                for key, entry in answered.items()
                if not any(asked[key]["at"] <= when <= entry["at"] for when in done)
            ]
            arena.check(not bare, f"{len(bare)} submits were acknowledged without an fsync that succeeded")
        else:
            arena.check(len(answered) == 60 - sum(refusals.values()), "it did not go on after one failed fsync")
        began = time.monotonic()
        again = crew.client(log.path, do="submit", first=0, count=60)
        arena.check(await asyncio.to_thread(again.wait, 60) == 0, "a client on a healthy disk did not end well")
        worker = crew.worker()
        await _all_ran(arena, crew, log, began)
        worker.end()
    name = "every" if which.endswith("+") else "one"
    arena.figure(**{f"{name}_failed": len(failed), f"{name}_acknowledged": len(answered)})
