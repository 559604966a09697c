"""One trial of one system: a fresh database, its commands and its workers in processes of their own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from bench.contestants import Contestant
from bench.environments import ROOT, python_of
from bench.servers import Postgres, Redis
from bench.systems.probes import Probes

PATIENCE_SECONDS = 180.0
STALL_SECONDS = 30.0
STOP_SECONDS = 15.0


class Stalled(Exception):
    """A system does not get on; the text says how far it came."""


class Worker:
    """A worker process that waits for `go`."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != b"ready":
            raise Stalled(f"a worker does not start: {log.read_text()[-2_000:]}")

    def go(self) -> None:
        """Let it begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def family(self) -> list[psutil.Process]:
        """The process and what it forked."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        return []

    def megabytes(self) -> float:
        """Resident memory of the family."""
        return sum(each.memory_info().rss for each in self.family()) / 2**20

    def cpu_seconds(self) -> float:
        """Of the family, so far."""
        return sum(sum(each.cpu_times()[:2]) for each in self.family())

    def kill(self) -> None:
        """End it at once, as a crash would."""
        family = self.family()
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in order, or at once when it does not end."""
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class Trial:
    """One system on a fresh database."""

    def __init__(self, contestant: Contestant, server: Postgres | Redis, folder: Path) -> None:
        self.contestant = contestant
        self.server = server
        self.url = server.fresh(contestant.name.lower())
        self.probes = Probes(folder)
        self._folder = folder
        self._workers: list[Worker] = []
        self._python = python_of(contestant.environment)
        self.call("prepare")

    def _command(self, *words: object) -> list[str]:
        return [self._python, "-m", self.contestant.module, self.url, str(self._folder), *map(str, words)]

    def call(self, *words: object) -> Any:
        """Do one command to its end, and give what it answers. Raises `Stalled`."""
        done = subprocess.run(
            self._command(*words),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        if done.returncode != 0:
            raise Stalled(f"{self.contestant.name} {' '.join(map(str, words))}: {done.stderr[-2_000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def fill(self, tasks: int, size: int) -> None:
        """Queue tasks by the quickest way that the system has."""
        self.call("bulk" if self.contestant.bulk else "together", tasks, size)

    def worker(self, *words: object) -> Worker:
        """A worker process, ready to go."""
        worker = Worker(self._command(*(words or ("work",))), self._folder / "worker.log")
        self._workers.append(worker)
        return worker

    def analyze(self) -> None:
        """Let the server know the tables, as it would before long."""
        if isinstance(self.server, Postgres):
            with self.server.look(self.url) as connection:
                connection.execute("VACUUM ANALYZE")

    def pending(self) -> int:
        """How many tasks are not settled."""
        return self.contestant.pending(self.server, self.url)

    def until(self, condition: Callable[[], bool], progress: Callable[[], int]) -> None:
        """Wait for it. Raises `Stalled` when nothing gets on."""
        seen, since = progress(), time.monotonic()
        while not condition():
            time.sleep(0.005)
            if progress() != seen:
                seen, since = progress(), time.monotonic()
            if time.monotonic() - since > STALL_SECONDS:
                raise Stalled(f"{self.contestant.name} stands still at {seen}: {self.said()[-1_500:]}")

    def said(self) -> str:
        """What the workers wrote to their logs."""
        log = self._folder / "worker.log"
        return log.read_text() if log.exists() else ""

    def until_ticks(self, tasks: int) -> None:
        """Wait until so many tasks have begun. Raises `Stalled`."""
        self.until(lambda: self.probes.count() >= tasks, self.probes.count)

    def until_settled(self, left: int = 0) -> int:
        """Wait until all are settled, and give the time of that. Raises `Stalled`."""
        begin = time.monotonic()
        while self.pending() > left:
            if time.monotonic() - begin > STALL_SECONDS:
                raise Stalled(f"{self.contestant.name} does not settle {self.pending()} tasks")
            time.sleep(0.005)
        return time.monotonic_ns()

    def drain(self, tasks: int, workers: int, left: int = 0) -> float:
        """Tasks a second, from the beginning of the first task until all are settled durably. Raises `Stalled`."""
        self.probes.clear()
        working = [self.worker() for _ in range(workers)]
        for worker in working:
            worker.go()
        self.until_ticks(tasks)
        ended = self.until_settled(left)
        return tasks / ((ended - self.probes.ticks()[0]) / 1e9)

    def stop_workers(self) -> None:
        """End all."""
        while self._workers:
            self._workers.pop().stop()

    def close(self) -> None:
        """End all, and remove the database."""
        self.stop_workers()
        self.server.drop(self.url)


@contextlib.contextmanager
def trial(contestant: Contestant, server: Postgres | Redis) -> Iterator[Trial]:
    """A trial with a folder of its own for what the handlers leave. Raises `Stalled`."""
    folder = Path(tempfile.mkdtemp(prefix="perdure-trial-"))
    try:
        begun = Trial(contestant, server, folder)
        try:
            yield begun
        finally:
            begun.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
