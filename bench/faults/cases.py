"""The faults. Each is done to every system in the same way, and returns what became of its tasks."""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from bench.faults.stage import Outcome, Stage, kill

PATIENCE_SECONDS = 100.0
"""A task that has not ended so long after the last fault counts as lost."""
PAUSE_SECONDS = 15.0
"""Longer than the lease."""
POISONED_SECONDS = 50.0
"""So long after its first run a task that kills its worker is looked at."""


def worker_killed(stage: Stage) -> Outcome:
    """SIGKILL for the worker's whole group in the middle of 200 tasks of 0.2 s; a supervisor starts another."""
    stage.submit(0, 200, 0.2).wait(60)
    stage.work()
    stage.wait_for_ends(60)
    kill(stage.worker)
    return stage.judge(time.monotonic(), PATIENCE_SECONDS)


def server_restarts(stage: Stage) -> Outcome:
    """The server is ended at once and started again, three times, under load."""
    client = stage.submit(0, 400, 0.1, 0.02)
    stage.work()
    stage.wait_for_ends(20)
    for _ in range(3):
        stage.server.restart()
        time.sleep(3.0)
    healed = time.monotonic()
    told = stage.until(lambda: client.poll() is not None, 60)
    note = f"{stage.restarts} ends of the worker" + ("" if told else "; the client is not answered")
    return stage.judge(healed, PATIENCE_SECONDS, note)


def connections_cut(stage: Stage) -> Outcome:
    """The server breaks every connection to the database, five times, under load."""
    client = stage.submit(0, 300, 0.1, 0.02)
    stage.work()
    stage.wait_for_ends(20)
    cut = 0
    for _ in range(5):
        cut += stage.server.cut(stage.url)
        time.sleep(1.0)
    healed = time.monotonic()
    stage.until(lambda: client.poll() is not None, 60)
    return stage.judge(healed, PATIENCE_SECONDS, f"{cut} cut, {stage.restarts} ends of the worker")


def client_killed(stage: Stage) -> Outcome:
    """A client is killed between a submit and its answer, thirty times; the next asks again what was not answered."""
    stage.work()
    stage.submit(0, 1, 0.0).wait(60)
    stage.wait_for_ends(1)
    chance = random.Random(stage.name)
    for number in range(1, 31):
        client = stage.submit(0, 10_000, 0.0)
        enough = len(stage.notes.numbers("answered")) + number % 3 + 1
        stage.under_load(lambda enough=enough: len(stage.notes.numbers("answered")) >= enough, f"answer {enough}")
        time.sleep(chance.uniform(0.0, 0.01))
        kill(client)
    healed = time.monotonic()
    stage.submit(0, len(stage.notes.numbers("asked")), 0.0).wait(60)
    return stage.judge(healed, PATIENCE_SECONDS)


def worker_stands_still(stage: Stage) -> Outcome:
    """SIGSTOP for longer than the lease in the middle of 60 tasks of 0.4 s, another worker beside it, then SIGCONT."""
    stage.submit(0, 60, 0.4).wait(60)
    stage.work()
    stage.wait_for_ends(10)
    os.killpg(stage.worker.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    stage.start("work")
    time.sleep(PAUSE_SECONDS)
    os.killpg(stage.worker.pid, signal.SIGCONT)
    return stage.judge(stopped, PATIENCE_SECONDS)


def poison(stage: Stage) -> Outcome:
    """A task that kills its worker; a supervisor starts another each time.

    It has no end by which it could be lost or end twice; the note tells how many runs it had.
    """
    stage.submit(0, 1, -1.0).wait(60)
    stage.work()
    stage.under_load(lambda: stage.notes.runs("start")[0], "the first run")
    time.sleep(POISONED_SECONDS)
    answered, runs = len(stage.notes.numbers("answered")), stage.notes.runs("start")[0]
    return Outcome(answered, None, None, None, stage.unfinished(), None, f"{runs} runs")


class Case(NamedTuple):
    """One fault. `numbers` are those of the scoreboard that it belongs to."""

    name: str
    numbers: str
    run: Callable[[Stage], Outcome]


CASES = (
    Case("worker killed", "1", worker_killed),
    Case("poison", "3", poison),
    Case("worker stands still", "4, 5", worker_stands_still),
    Case("client killed", "2, 11", client_killed),
    Case("server restarts", "15", server_restarts),
    Case("connections cut", "18", connections_cut),
)
