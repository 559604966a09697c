"""The simulated clients and operators: what they ask for, and the log of what they were told.

An outcome that was not told is unknown, never failed.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from perdure.domain.attempt import Hold
from perdure.domain.states import BAD_ENDS
from perdure.engine.act_on_matching import Matching, Step
from perdure.engine.engine import Engine
from perdure.engine.requests import Principal, TaskRequest
from perdure.errors import PerdureError, Unavailable, UniqueConflict
from perdure.store.ledger import CancelAnswer, Submitted, WorkerOrder
from simulation import breakers, matching, policies, workload

if TYPE_CHECKING:
    from simulation.processes import Process
    from simulation.world import World

CLIENT = Principal("client")
NEIGHBOUR = Principal("neighbour", policies.ELSEWHERE)
TRIES = 6
PAUSE_SECONDS = 2.0
"""Between two acts of a client, on average."""


class Client:
    """One client process. It repeats a call whose outcome it does not know where that is safe."""

    def __init__(self, world: "World", process: "Process", engine: Engine, chance: random.Random) -> None:
        self._world = world
        self._process = process
        self._engine = engine
        self._chance = chance

    async def work(self, until: float) -> None:
        """Ask for one thing after the other until that instant of the loop."""
        loop = asyncio.get_running_loop()
        acts = (
            [self._submit] * 8
            + [self._submit_job] * 4
            + [self._cancel] * 5
            + [self._redrive] * 3
            + [self._submit_within, self._cancel_job, self._queue, self._postpone, self._order]
            + [self._look] * 2
            + [self._purge] * 2
            + [self._submit_keyed] * 4
            + [self._submit_only_one] * 4
            + [self._submit_to_both] * 2
            + [self._retry_job] * 3
            + [self._act_by_filter] * 2
            + [self._change_policy]
            + [self._turn_breaker] * 2
        )
        while loop.time() < until:
            await asyncio.sleep(self._chance.expovariate(1 / PAUSE_SECONDS))
            act = self._chance.choice(acts)
            try:
                await act()
            except PerdureError as error:
                self._world.log(self._process.name, act.__name__, type(error).__name__)

    async def _told(self, ask: Callable[[], Awaitable[Any]], tries: int) -> Any:
        """The answer; raises `Unavailable` when it stays unknown."""
        for left in reversed(range(tries)):
            try:
                return await ask()
            except Unavailable:
                if not left:
                    raise
                await asyncio.sleep(self._chance.uniform(0.2, 6.0))
        raise AssertionError("unreachable")

    def _some(self, ids: Sequence[str]) -> list[str]:
        return [self._chance.choice(ids) for _ in range(self._chance.choice((1, 1, 3)))] if ids else []

    async def _submit(self) -> None:
        log, key = self._world.log_of_clients, None
        if self._chance.random() < 0.4:
            key = f"key-{self._chance.randint(1, 6)}"
        requests = [workload.task(self._chance) for _ in range(1 if key else self._chance.randint(1, 3))]
        if key is not None:
            # The same key always means the same request.
            requests = [workload.task(random.Random(f"{self._world.seed} {key}"), idempotency_key=key)]
        # Without a key, a repeat would be another task.
        ask = self._world.asking(self._engine.submit, requests, CLIENT)
        answers: list[Submitted | PerdureError] = await self._told(ask, TRIES if key else 1)
        for answer in answers:
            if isinstance(answer, PerdureError):
                self._world.log(self._process.name, "refused", type(answer).__name__)
            else:
                log.acknowledged(answer.id, key)

    async def _submit_keyed(self) -> None:
        by = self._chance.choice((CLIENT, CLIENT, CLIENT, NEIGHBOUR))
        await self._submit_as(by, workload.keyed(self._chance))

    async def _submit_only_one(self) -> None:
        await self._submit_as(CLIENT, workload.only_one(self._chance))

    async def _submit_to_both(self) -> None:
        """Much at once in two organizations, so that they have to take turns."""
        for by in self._chance.sample((CLIENT, NEIGHBOUR), 2):
            await self._submit_as(by, [workload.plain(self._chance) for _ in range(self._chance.choice((2, 5, 9)))])

    async def _submit_as(self, by: Principal, requests: list[TaskRequest]) -> None:
        for answer in await self._told(self._world.asking(self._engine.submit, requests, by), 1):
            if isinstance(answer, PerdureError):
                self._world.log(self._process.name, "refused", type(answer).__name__)
            else:
                self._world.log_of_clients.acknowledged(answer.id, None)

    async def _submit_job(self) -> None:
        key = f"job-{self._chance.randint(1, 4)}" if self._chance.random() < 0.5 else None
        chance = random.Random(f"{self._world.seed} {key}") if key else self._chance
        request = workload.job(chance, key)
        ask = self._world.asking(self._engine.submit_job, request, CLIENT)
        try:
            submitted = await self._told(ask, TRIES if key else 1)
        except UniqueConflict:
            self._world.coverage.feats["a job met the holder of a key"] += 1
            raise
        self._world.log_of_clients.acknowledged_job(submitted.id, list(submitted.task_ids.values()), key)

    async def _submit_within(self) -> None:
        await self._engine.submit(
            [TaskRequest(kind="act", payload=workload.script(self._chance, 0.6), timeout=9.0)], CLIENT
        )
        connection = apsw.Connection(str(self._world.path))
        try:
            connection.execute("BEGIN IMMEDIATE")
            answers = self._engine.submit_within(connection, [workload.task(self._chance)], CLIENT)
            commits = self._chance.random() < 0.7
            connection.execute("COMMIT" if commits else "ROLLBACK")
        finally:
            connection.close()
        self._world.committed_elsewhere()
        for answer in answers:
            if commits and not isinstance(answer, PerdureError):
                self._world.log_of_clients.acknowledged(answer.id, None)

    async def _cancel(self) -> None:
        ids = self._some(self._world.log_of_clients.ids)
        if not ids:
            return
        answers = await self._told(self._world.asking(self._engine.cancel, ids, CLIENT), TRIES)
        for id, answer in zip(ids, answers, strict=True):
            if answer.answer is CancelAnswer.CANCELLED:
                self._world.log_of_clients.told_cancelled.add(id)

    async def _redrive(self) -> None:
        failed = [
            known.row.id for known in self._world.witness.tasks.values() if known.state in ("failed", "dead_lettered")
        ]
        if ids := self._some(failed):
            await self._told(self._world.asking(self._engine.redrive, ids, CLIENT), TRIES)

    async def _cancel_job(self) -> None:
        if self._world.log_of_clients.jobs:
            job = self._chance.choice(sorted(self._world.log_of_clients.jobs))
            await self._told(self._world.asking(self._engine.cancel_job, job, CLIENT), TRIES)

    async def _retry_job(self) -> None:
        failed = [known.row.job_id for known in self._world.witness.tasks.values() if known.state in BAD_ENDS]
        jobs = sorted({each for each in failed if each is not None} or self._world.log_of_clients.jobs)
        if jobs:
            await self._told(self._world.asking(self._engine.retry_job, self._chance.choice(jobs), CLIENT), TRIES)

    async def _change_policy(self) -> None:
        await policies.change(self._engine, self._chance, self._world)

    async def _turn_breaker(self) -> None:
        ledger = self._world.ledger_of(self._process)
        if self._chance.random() < 0.5:
            await ledger.trip_breaker(
                "default", breakers.FRAIL, self._chance.choice((2_000_000, 9_000_000)), "operator"
            )
        else:
            await ledger.reset_breaker("default", breakers.FRAIL, "operator")

    async def _act_by_filter(self) -> None:
        async def ask(asked: Matching) -> Step:
            step: Step = await self._told(self._world.asking(self._engine.act_on_matching, asked, CLIENT), TRIES)
            return step

        await matching.act(self._world, self._process.name, self._chance, ask)

    async def _queue(self) -> None:
        name = self._chance.choice(("default", "aside", "plain"))
        await self._engine.pause_queue(name, CLIENT)
        await asyncio.sleep(self._chance.uniform(1.0, 20.0))
        if self._chance.random() < 0.6:
            await self._engine.purge_queue(name, CLIENT)
        await self._told(self._world.asking(self._engine.resume_queue, name, CLIENT), 20)

    async def _purge(self) -> None:
        dead = [known.row.id for known in self._world.witness.tasks.values() if known.state == "dead_lettered"]
        ids = self._some(dead)
        if not ids:
            return
        if self._chance.random() < 0.5:
            await self._engine.discard(ids, CLIENT)
        else:
            await self._engine.purge(ids, CLIENT)

    async def _postpone(self) -> None:
        waiting = [known.row.id for known in self._world.witness.tasks.values() if known.state in ("queued", "pending")]
        if ids := self._some(waiting):
            now_us = await self._world.ledger_of(self._process).now_us()
            await self._world.ledger_of(self._process).postpone("default", ids[0], now_us + 5_000_000)

    async def _order(self) -> None:
        workers = sorted(self._world.workers)
        if not workers:
            return
        order = self._chance.choice((WorkerOrder.PAUSE, WorkerOrder.DRAIN, WorkerOrder.REVOKE, WorkerOrder.REVOKE))
        worker = self._chance.choice(workers)
        await self._told(self._world.asking(self._engine.order_worker, worker, order, CLIENT), TRIES)
        if order is WorkerOrder.REVOKE:
            self._world.coverage.faults["worker revoked"] += 1
        if order is WorkerOrder.PAUSE:
            await asyncio.sleep(self._chance.uniform(1.0, 10.0))
            await self._told(self._world.asking(self._engine.order_worker, worker, WorkerOrder.WORK, CLIENT), 20)

    async def _look(self) -> None:
        if ids := self._some(self._world.log_of_clients.ids):
            ledger = self._world.ledger_of(self._process)
            await ledger.receipt_known(Hold("default", ids[0], self._world.witness.attempt_of(ids[0]), ""))
            await ledger.specified("default", ids[:1])
            await self._engine.wait_ended("default", ids[:1], 2.0)


class ClientLog:
    """What clients know."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.jobs: set[str] = set()
        self.told_cancelled: set[str] = set()
        self.contradictions: list[str] = []
        self._by_key: dict[str, str] = {}

    def acknowledged(self, id: str, key: str | None) -> None:
        """A client was told that a task exists."""
        self._remember(id, key)
        if id not in self.ids:
            self.ids.append(id)

    def acknowledged_job(self, id: str, tasks: Sequence[str], key: str | None) -> None:
        """A client was told that a job exists."""
        self._remember(id, key)
        if id not in self.jobs:
            self.jobs.add(id)
            self.ids += tasks

    def _remember(self, id: str, key: str | None) -> None:
        if key is not None and self._by_key.setdefault(key, id) != id:
            self.contradictions.append(f"key {key} was answered with {self._by_key[key]} and with {id}")
