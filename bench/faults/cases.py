"""The faults. Each is done to every system in the same way, and returns what became of its tasks."""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from bench.faults.stage import Outcome, Stage, kill

STARTS_SECONDS = 30.0
PATIENCE_SECONDS = 100.0
"""A task that has not ended so long after the last fault counts as lost."""
PAUSE_SECONDS = 15.0
"""Longer than the lease."""
POISONED_SECONDS = 50.0


def worker_killed(stage: Stage) -> Outcome:
    """SIGKILL for the worker's whole group in the middle of 200 tasks of 0.2 s; a supervisor starts another."""
    stage.submit(0, 200, 0.2).wait(60)
    stage.work()
    stage.until(lambda: stage.ended() >= 60, STARTS_SECONDS)
    kill(stage.worker)
    return stage.judge(time.monotonic(), PATIENCE_SECONDS)


def server_restarts(stage: Stage) -> Outcome:
    """The server is ended at once and started again, three times, under load."""
    client = stage.submit(0, 400, 0.1, 0.02)
    stage.work()
    stage.until(lambda: stage.ended() >= 20, STARTS_SECONDS)
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
    stage.until(lambda: stage.ended() >= 20, STARTS_SECONDS)
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
    chance = random.Random(stage.left)
    for number in range(1, 31):
        client = stage.submit(0, 10_000, 0.0)
        enough = len(stage.notes.numbers("answered")) + number % 3 + 1
        stage.until(lambda enough=enough: len(stage.notes.numbers("answered")) >= enough, STARTS_SECONDS)
        time.sleep(chance.uniform(0.0, 0.01))
        kill(client)
    healed = time.monotonic()
    stage.submit(0, len(stage.notes.numbers("asked")), 0.0).wait(60)
    return stage.judge(healed, PATIENCE_SECONDS)


def worker_stands_still(stage: Stage) -> Outcome:
    """SIGSTOP for longer than the lease in the middle of 60 tasks of 0.4 s, another worker beside it, then SIGCONT."""
    stage.submit(0, 60, 0.4).wait(60)
    stage.work()
    stage.until(lambda: stage.ended() >= 10, STARTS_SECONDS)
    os.killpg(stage.worker.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    stage.start("work")
    time.sleep(PAUSE_SECONDS)
    os.killpg(stage.worker.pid, signal.SIGCONT)
    return stage.judge(stopped, PATIENCE_SECONDS)


def poison(stage: Stage) -> Outcome:
    """A task that kills its worker; a supervisor starts another each time. `again` is how many runs it had."""
    stage.submit(0, 1, -1.0).wait(60)
    stage.work()
    began = time.monotonic()
    stage.until(lambda: stage.server.pending(stage.url, stage.left) == 0 and stage.notes.effects("start"), 1.0)
    while time.monotonic() < began + POISONED_SECONDS:
        time.sleep(0.2)
    runs = stage.notes.runs("start")[0]
    return Outcome(1, 0, 0, 0, stage.server.pending(stage.url, stage.left), POISONED_SECONDS, f"{runs} runs")


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
