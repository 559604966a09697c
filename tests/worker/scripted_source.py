"""A source of work whose answers a test writes: no store, no rules, everything that was said to it is kept."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Outcome
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.engine.requests import NewTask
from perdure.errors import LeaseLost, PerdureError, StoreUnreachable
from perdure.store.job_ledger import Grown
from perdure.store.ledger import (
    Control,
    ParentResult,
    Renewed,
    Reported,
    SettleAnswer,
    Settled,
    Taker,
    WorkerInfo,
    WorkerOrder,
)
from perdure.store.wakeups import Topic


class HintBox:
    """The subscription of the scripted source."""

    def __init__(self) -> None:
        self._topics = Topic(0)
        self._event = asyncio.Event()

    def hint(self, topics: Topic) -> None:
        self._topics |= topics
        self._event.set()

    async def wait(self, timeout: float) -> Topic:
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return Topic(0)
        self._event.clear()
        topics, self._topics = self._topics, Topic(0)
        return topics

    def close(self) -> None:
        return


class ScriptedSource:
    """Leases are offered by a test; every answer can be changed on the way."""

    def __init__(self, lease_seconds: float = 60.0) -> None:
        self.lease_us = round(lease_seconds * SECOND_US)
        self.queue: list[Lease] = []
        self.outcomes: dict[str, Outcome] = {}
        self.settles: list[list[tuple[Hold, Outcome]]] = []
        self.claims: list[tuple[float, int, int]] = []
        """(loop time, asked, given)"""
        self.renewals: list[list[Renewal]] = []
        self.renewed_at: list[float] = []
        self.reports: list[Report] = []
        self.report_calls = 0
        self.added: list[tuple[Hold, Sequence[NewTask]]] = []
        self.add_refusal: PerdureError | None = None
        self.lost: set[str] = set()
        """Task ids whose attempts are not live any more."""
        self.cancels: dict[str, int] = {}
        """Attempt ids with the microseconds that remain to stop."""
        self.order = WorkerOrder.WORK
        self.order_of_registered = WorkerOrder.WORK
        self.registered: list[WorkerInfo] = []
        self.capacities: list[int] = []
        """As heartbeats told them."""
        self.left: list[str] = []
        self.parents: dict[str, dict[str, ParentResult]] = {}
        self.away = False
        self.calls: Counter[str] = Counter()
        self.report_answer: Callable[[Report], Reported | PerdureError] | None = None
        self.boxes: list[HintBox] = []
        self._ended = asyncio.Event()
        self._made = 0

    def offer(self, kind: str, payload: Any = None, *, hint: bool = True, **fields: Any) -> Lease:
        """Put a task into the queue. `fields` replace those of its lease."""
        self._made += 1
        number = self._made
        hold = Hold("default", f"task-{number}", f"attempt-{number}", f"token-{number}")
        facts: dict[str, Any] = {
            "hold": hold,
            "kind": kind,
            "queue": "default",
            "priority": 4,
            "payload": Body(json.dumps(payload if payload is not None else {}).encode()),
            "attempt": 1,
            "fence": 1_000 + number,
            "generation": 1,
            "lease_us": self.lease_us,
            "timeout_us": None,
            "deadline_us": 24 * 3600 * SECOND_US,
            "start_within_us": None,
            "job_id": None,
            "name": None,
            "parents": 0,
            "retry": None,
            "options": None,
            "initiator": "somebody",
            "checkpoint": None,
            "max_attempts": 3,
        }
        lease = Lease(**{**facts, **fields})
        self.queue.append(lease)
        if hint:
            self.hint(Topic.READY)
        return lease

    def hint(self, topics: Topic) -> None:
        for box in self.boxes:
            box.hint(topics)

    async def ended(self, lease: Lease, within: float = 3600.0) -> Outcome:
        """The outcome of a task, once it is settled."""
        async with asyncio.timeout(within):
            while lease.hold.task_id not in self.outcomes:
                self._ended.clear()
                await self._ended.wait()
        return self.outcomes[lease.hold.task_id]

    def _call(self, verb: str) -> None:
        self.calls[verb] += 1
        if self.away:
            raise StoreUnreachable(f"the scripted source is away ({verb})")

    # WorkSource

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        self._call("register")
        self.registered.append(worker)
        return self.order_of_registered

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        self._call("heartbeat")
        self.capacities.append(capacity)
        return self.order

    async def leave(self, worker_id: str) -> None:
        self._call("leave")
        self.left.append(worker_id)

    async def claim(self, worker_id: str, count: int, *, wait: float = 0.0) -> list[Lease]:
        self._call("claim")
        given, self.queue = self.queue[:count], self.queue[count:]
        self.claims.append((asyncio.get_running_loop().time(), count, len(given)))
        return given

    def stand_by(self, worker_id: str, count: int, taker: Taker) -> Callable[[], None]:
        return self._nothing_to_withdraw

    def _nothing_to_withdraw(self) -> None:
        return

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        self._call("renew")
        self.renewals.append(list(renewals))
        self.renewed_at.append(asyncio.get_running_loop().time())
        return [
            None if each.hold.task_id in self.lost else Renewed(self.lease_us, self.cancels.get(each.hold.attempt_id))
            for each in renewals
        ]

    async def control(self, worker_id: str) -> list[Control]:
        self._call("control")
        return [Control(attempt, us) for attempt, us in self.cancels.items()]

    async def inputs(self, hold: Hold) -> Mapping[str, ParentResult]:
        self._call("inputs")
        return self.parents[hold.task_id]

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        self._call("report")
        self.report_calls += 1
        return [self._take_report(each) for each in reports]

    def _take_report(self, report: Report) -> Reported | PerdureError:
        if report.hold.task_id in self.lost:
            return LeaseLost("lost")
        self.reports.append(report)
        if self.report_answer is not None:
            return self.report_answer(report)
        return Reported(False, None)

    async def add_tasks(self, hold: Hold, tasks: Sequence[NewTask], ran_us: int = 0) -> Grown:
        self._call("add_tasks")
        if hold.task_id in self.lost:
            raise LeaseLost("lost")
        if self.add_refusal is not None:
            raise self.add_refusal
        self.added.append((hold, tasks))
        return Grown("job", {task.name: f"id of {task.name}" for task in tasks}, len(tasks))

    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        self._call("settle")
        self.settles.append(list(outcomes))
        answers: list[Settled] = []
        for hold, outcome in outcomes:
            if hold.task_id in self.lost:
                answers.append(Settled(SettleAnswer.LEASE_LOST, None))
                continue
            self.outcomes[hold.task_id] = outcome
            self.cancels.pop(hold.attempt_id, None)
            answers.append(Settled(SettleAnswer.APPLIED, TaskState.SUCCEEDED))
        self._ended.set()
        return answers

    def subscribe(self) -> HintBox:
        box = HintBox()
        self.boxes.append(box)
        return box
