"""One system on a fresh database: its clients, its worker with a supervisor, and what became of the tasks."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.contestants import Contestant
from bench.environments import ROOT, python_of
from bench.faults.notes import Notes
from bench.faults.servers import Server

STARTS_SECONDS = 30.0
"""So long a system has to come under load."""
BACK_SECONDS = 1.0
"""After so long a supervisor starts a worker again that has ended."""
LOOK_SECONDS = 0.05
QUIET_SECONDS = 3.0
"""So long nothing more may run before a system counts as done."""


class NotUnderLoad(Exception):
    """The system did nothing that a fault could have met."""


class Outcome(NamedTuple):
    """What became of the tasks of one case; None is what the case does not measure."""

    tasks: int
    lost: int | None
    """Acknowledged, never run to the end."""
    ended_twice: int | None
    """Run to the end more than once."""
    begun_twice: int | None
    """Begun more than once; those under way at the fault have to be."""
    unfinished: int
    """What the system's own tables say is unfinished."""
    seconds: float | None
    """From the last fault to the last end of a task."""
    note: str = ""


class Stage:
    """Runs processes of one system; all that runs at the end is killed."""

    def __init__(self, contestant: Contestant, server: Server, folder: Path) -> None:
        self.server = server
        self.name = contestant.name
        self._counted_by = contestant.left
        self.url = server.fresh(contestant.name)
        self.notes = Notes(folder)
        self.restarts = 0
        """How often the supervisor had to start a worker that had ended by itself."""
        self._folder = folder
        module = contestant.module.rpartition(".")[2]
        self._command = [python_of(contestant.environment), "-m", f"bench.faults.programs.{module}", self.url]
        self._running: list[subprocess.Popen[bytes]] = []
        self._over = threading.Event()
        self.start("prepare").wait(60)

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """A process in a group of its own."""
        with (self._folder / f"{words[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._command, str(self._folder), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def submit(self, first: int, count: int, seconds: float, pause: float = 0.0) -> "subprocess.Popen[bytes]":
        """A client that submits tasks one by one until all are acknowledged."""
        return self.start("submit", json.dumps({"first": first, "count": count, "seconds": seconds, "pause": pause}))

    def work(self) -> None:
        """A worker, started again whenever it ends."""
        threading.Thread(target=self._supervise, daemon=True).start()

    def _supervise(self) -> None:
        while not self._over.is_set():
            self.worker = self.start("work")
            while self.worker.poll() is None and not self._over.is_set():
                time.sleep(LOOK_SECONDS)
            if not self._over.is_set():
                self.restarts += 1
                kill(self.worker)
            self._over.wait(BACK_SECONDS)

    def until(self, condition: Callable[[], object], seconds: float) -> bool:
        """Wait for something: whether it came."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def under_load(self, condition: Callable[[], object], what: str) -> None:
        """Wait for what has to be before a fault. Raises `NotUnderLoad` when it does not come."""
        if not self.until(condition, STARTS_SECONDS):
            raise NotUnderLoad(f"not under load: {what} did not come in {STARTS_SECONDS:.0f} s")

    def wait_for_ends(self, count: int) -> None:
        """Wait until so many tasks have come to their end. Raises `NotUnderLoad` when they do not."""
        self.under_load(lambda: len(self.notes.runs("end")) >= count, f"the end of {count} tasks")

    def unfinished(self) -> int:
        """How many tasks the system's own tables say are unfinished. Raises what the server's driver does."""
        return self.server.unfinished(self.url, self._counted_by)

    def judge(self, healed: float, patience: float, note: str = "") -> Outcome:
        """Wait until all that was acknowledged has ended and is quiet, or so many seconds from `healed`; then count."""
        self.until(
            lambda: self.notes.numbers("answered") <= self.notes.runs("end").keys(),
            healed + patience - time.monotonic(),
        )
        unfinished = self.unfinished()
        begun = sum(self.notes.runs("start").values())
        until = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            unfinished = self.unfinished()
            if (now := sum(self.notes.runs("start").values())) != begun or unfinished:
                begun, until = now, min(until + LOOK_SECONDS, healed + patience)
        acknowledged, ends = self.notes.numbers("answered"), self.notes.runs("end")
        last = max((each.at for each in self.notes.effects("end")), default=healed)
        return Outcome(
            len(acknowledged),
            len(acknowledged - ends.keys()),
            sum(count > 1 for count in ends.values()),
            sum(count > 1 for count in self.notes.runs("start").values()),
            unfinished,
            max(0.0, last - healed),
            note,
        )

    def close(self) -> None:
        """End all."""
        self._over.set()
        time.sleep(2 * LOOK_SECONDS)
        for process in self._running:
            kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its group at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def stage(contestant: Contestant, server: Server) -> Iterator[Stage]:
    """A system on a fresh database, with a folder for what is noted."""
    folder = Path(tempfile.mkdtemp(prefix="perdure-faults-"))
    try:
        begun = Stage(contestant, server, folder)
        try:
            yield begun
        finally:
            begun.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
