"""Operations and duties that tell an observer what they did. What they do is what is behind them."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from perdure.ambient import Clock
from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import (
    Failed,
    GaveUp,
    HandedBack,
    NotStarted,
    Outcome,
    Snoozed,
    Stopped,
    Succeeded,
    SucceededPartly,
)
from perdure.engine.duties import Duty
from perdure.engine.engine import Operations
from perdure.engine.requests import JobRequest, Principal, TaskRequest
from perdure.errors import LeaseLost, PerdureError, Unavailable
from perdure.store.ledger import (
    JobSubmitted,
    Renewed,
    Reported,
    SettleAnswer,
    Settled,
    Submitted,
    Swept,
    Taker,
    WorkerOrder,
)
from perdure.store.wakeups import Subscription, Topic
from perdure.telemetry.observer import Observer

R = TypeVar("R")

OUTCOMES: dict[type[Any], str] = {
    Succeeded: "succeeded",
    SucceededPartly: "succeeded_partly",
    Failed: "failed",
    Snoozed: "snoozed",
    GaveUp: "gave_up",
    HandedBack: "handed_back",
    Stopped: "stopped",
    NotStarted: "not_started",
}


class ObservedOperations:
    """`Operations` with an observer. What is not counted goes straight through."""

    def __init__(self, operations: Operations, observer: Observer, seen: Callable[[], None] | None = None) -> None:
        self._operations = operations
        self._observer = observer
        self._seen = seen
        """Called when a worker's sign of life was taken."""
        self.views = operations.views

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)

    async def _watched(self, call: Awaitable[R]) -> R:
        try:
            return await call
        except Unavailable as error:
            self._observer.store_failed(error.code)
            raise

    async def submit(self, requests: Sequence[TaskRequest], by: Principal) -> list[Submitted | PerdureError]:
        """See `Operations`."""
        answers = await self._watched(self._operations.submit(requests, by))
        replayed = sum(1 for each in answers if isinstance(each, Submitted) and each.replayed)
        stored = sum(1 for each in answers if isinstance(each, Submitted)) - replayed
        self._observer.submitted(stored, replayed)
        if len(answers) > 1:
            for each in answers:
                if isinstance(each, PerdureError):
                    self._observer.refused(each.code)
        return answers

    async def submit_job(self, request: JobRequest, by: Principal) -> JobSubmitted:
        """See `Operations`."""
        answer = await self._watched(self._operations.submit_job(request, by))
        tasks = len(answer.task_ids)
        self._observer.submitted(*((0, tasks) if answer.replayed else (tasks, 0)))
        return answer

    async def claim(
        self, worker_id: str, count: int, request_id: str | None = None, *, wait: float = 0.0
    ) -> list[Lease]:
        """See `Operations`."""
        leases = await self._watched(self._operations.claim(worker_id, count, request_id, wait=wait))
        self._observer.claimed(len(leases))
        return leases

    def stand_by(self, worker_id: str, count: int, taker: Taker, request: str | None = None) -> Callable[[], None]:
        """See `Operations`."""
        return self._operations.stand_by(worker_id, count, _ObservedTaker(taker, self._observer), request)

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """See `Operations`."""
        answers = await self._watched(self._operations.renew(renewals))
        lost = sum(1 for each in answers if each is None)
        self._observer.renewed(len(answers) - lost)
        if lost:
            self._observer.lease_lost("renew", lost)
        return answers

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """See `Operations`."""
        order = await self._watched(self._operations.heartbeat(worker_id, capacity))
        if self._seen is not None:
            self._seen()
        return order

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """See `Operations`."""
        answers = await self._watched(self._operations.report(reports))
        lost = sum(1 for each in answers if isinstance(each, LeaseLost))
        if lost:
            self._observer.lease_lost("report", lost)
        return answers

    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        """See `Operations`."""
        answers = await self._watched(self._operations.settle(outcomes))
        ended = Counter(
            (OUTCOMES[type(outcome)], str(answer.state))
            for (_, outcome), answer in zip(outcomes, answers, strict=True)
            if answer.answer is SettleAnswer.APPLIED
        )
        for (name, state), tasks in ended.items():
            self._observer.settled(name, state, tasks)
        for turn in [each.turned for each in answers if each.turned is not None]:
            self._observer.breaker_turned(turn.kind, turn.state)
        lost = sum(1 for each in answers if each.answer is SettleAnswer.LEASE_LOST)
        if lost:
            self._observer.lease_lost("settle", lost)
        return answers


class _ObservedTaker:
    """Whoever stands by, and is counted."""

    def __init__(self, taker: Taker, observer: Observer) -> None:
        self._taker = taker
        self._observer = observer
        self.begun = taker.begun
        self.passed_by = taker.passed_by
        self.failed = taker.failed

    @property
    def subscription(self) -> Subscription | None:
        return self._taker.subscription

    def taken(self, leases: list[Lease]) -> None:
        self._observer.claimed(len(leases))
        self._taker.taken(leases)


class ObservedDuty:
    """A duty with an observer."""

    def __init__(self, duty: Duty, observer: Observer, clock: Clock, seen: Callable[[], None]) -> None:
        self._duty = duty
        self._observer = observer
        self._seen = seen
        self._clock = clock

    @property
    def name(self) -> str:
        """See `Duty`."""
        return self._duty.name

    @property
    def interval_us(self) -> int:
        """See `Duty`."""
        return self._duty.interval_us

    @property
    def wakes_on(self) -> Topic:
        """See `Duty`."""
        return self._duty.wakes_on

    @property
    def rest_us(self) -> int:
        """See `Duty`."""
        return self._duty.rest_us

    async def run_once(self, now_us: int) -> Swept:
        """See `Duty`."""
        began_us = self._clock.monotonic_us()
        try:
            swept = await self._duty.run_once(now_us)
        except Exception as error:
            self._observer.duty_failed(self._duty.name)
            if isinstance(error, Unavailable):
                self._observer.store_failed(error.code)
            raise
        self._seen()
        for turn in swept.turned:
            self._observer.breaker_turned(turn.kind, turn.state)
        self._observer.duty_ran(self._duty.name, swept.moved, (self._clock.monotonic_us() - began_us) / SECOND_US)
        return swept
