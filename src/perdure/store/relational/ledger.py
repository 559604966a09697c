"""Every verb of `store.ledger.Ledger`: as an operation of a store's writer, or as a question to a reader."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.breaker import BreakerTurn
from perdure.domain.retention import Retention
from perdure.domain.settlement import AttemptFacts
from perdure.domain.states import TaskState
from perdure.domain.task import Job, Task
from perdure.errors import PerdureError
from perdure.store.job_ledger import Grower, Grown, Growth, JobRetried
from perdure.store.ledger import (
    Cancellation,
    Cancelled,
    ClaimRequest,
    Control,
    Doubtful,
    JobSubmitted,
    ParentResult,
    Redrive,
    Renewed,
    Reported,
    Settled,
    Settling,
    Submitted,
    Swept,
    Taker,
    WorkerInfo,
    WorkerOrder,
)
from perdure.store.relational import (
    breakers,
    cancelling,
    doubting,
    growing,
    redriving,
    registering,
    renewing,
    reporting,
    retaining,
    retrying,
    sweeping,
)
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.operation import Lone, Operation, StandBy, Writer
from perdure.store.relational.transaction import Transaction
from perdure.store.relational.views import Readers
from perdure.store.specified import Specified

T = TypeVar("T")

_CANCEL = Operation("cancel", 1, cancelling.cancel)
_REPORT = Operation("report", 2, reporting.report)
_ACT = Operation("act", 5, lambda tx, acts: [act(tx) for act in acts], max_items=1)
_NOTE = Operation("note", 6, lambda tx, acts: [act(tx) for act in acts], durable=False)
_REDRIVE = Operation("redrive", 7, redriving.redrive)


class Shapes(NamedTuple):
    """The operations that each store has in its own shape, because there the shape of the work is the speed."""

    submit: Callable[[Any, list[Any], Lanes], list[Any]]
    submit_jobs: Callable[[Any, list[Any], Lanes], list[Any]]
    claim: Callable[[Any, list[Any], Lanes], list[Any]]
    settle: Callable[[Any, list[Any]], list[Any]]
    renew: Callable[[Any, list[Any]], list[Any]]
    grow: Callable[[Any, list[Any], Lanes], list[Any]]
    submit_lone: Callable[[Sequence[Any], int, Lanes], Lone | None] | None = None
    """How one task is submitted at an instant by one statement, where a store has that."""


class RelationalLedger:
    """Meets `store.ledger.Ledger`. Operations of one flush run in the order of their ranks: ends first, claims last."""

    def __init__(self, writer: Writer, readers: Readers, shapes: Shapes) -> None:
        self._writer = writer
        self._readers = readers
        lanes = Lanes()
        self._settle = Operation("settle", 0, shapes.settle)
        self._renew = Operation("renew", 3, shapes.renew, durable=False)
        submit_lone = shapes.submit_lone
        self._submit = Operation(
            "submit",
            8,
            lambda tx, items: shapes.submit(tx, items, lanes),
            lone=None if submit_lone is None else lambda tasks, now_us: submit_lone(tasks, now_us, lanes),
        )
        self._submit_jobs = Operation("submit_jobs", 8, lambda tx, items: shapes.submit_jobs(tx, items, lanes))
        self._grow = Operation("grow", 8, lambda tx, items: shapes.grow(tx, items, lanes))
        self._claim = Operation("claim", 9, lambda tx, items: shapes.claim(tx, items, lanes), durable=False)

    async def submit(self, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        return await self._writer.gather(self._submit, tasks)

    async def submit_jobs(self, jobs: Sequence[Job]) -> list[JobSubmitted | PerdureError]:
        return await self._writer.gather(self._submit_jobs, jobs)

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        return await self._act(lambda tx: registering.register(tx, worker))

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        noted = await self._writer.gather(_NOTE, [lambda tx: registering.heartbeat(tx, worker_id, capacity)])
        return WorkerOrder(noted[0])

    async def seen(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        noted = await self._writer.gather(_NOTE, [lambda tx: registering.seen(tx, worker_ids)])
        return list(noted[0])

    async def orders(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        return await self._readers.read(lambda tx: registering.orders(tx, worker_ids))

    async def leave(self, worker_id: str) -> None:
        await self._act(lambda tx: registering.leave(tx, worker_id))

    async def order(self, organization: str, worker_id: str, order: WorkerOrder, actor: str) -> None:
        await self._act(lambda tx: registering.order(tx, organization, worker_id, order, actor))

    async def claim(self, request: ClaimRequest) -> list[Lease]:
        leases: list[list[Lease]] = await self._writer.gather(self._claim, [request])
        return leases[0]

    def stand_by(self, request: ClaimRequest, taker: Taker) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        return self._writer.stand_by(StandBy(self._claim, request, len(request.leases), taker, loop))

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        return await self._writer.gather(self._renew, renewals)

    async def control(self, worker_id: str) -> list[Control]:
        return await self._readers.read(lambda tx: renewing.control(tx, worker_id))

    async def inputs(self, hold: Hold) -> dict[str, ParentResult]:
        return await self._readers.read(lambda tx: renewing.inputs(tx, hold))

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        return await self._writer.gather(_REPORT, reports)

    async def grower(self, hold: Hold) -> Grower:
        return await self._readers.read(lambda tx: growing.grower(tx, hold))

    async def grow(self, growths: Sequence[Growth]) -> list[Grown | PerdureError]:
        return await self._writer.gather(self._grow, growths)

    async def retry_job(self, organization: str, job_id: str, actor: str) -> JobRetried:
        return await self._act(lambda tx: retrying.retry_job(tx, organization, job_id, actor))

    async def facts(self, holds: Sequence[Hold]) -> list[AttemptFacts | None]:
        return await self._readers.read(lambda tx: doubting.facts(tx, holds))

    async def receipt_known(self, hold: Hold) -> bool:
        return bool(
            await self._readers.read(
                lambda tx: tx.value(
                    "receipt_known", organization=hold.organization, task=hold.task_id, attempt=hold.attempt_id
                )
            )
        )

    async def settle(self, settlings: Sequence[Settling]) -> list[Settled]:
        return await self._writer.gather(self._settle, settlings)

    async def cancel(self, cancellations: Sequence[Cancellation]) -> list[Cancelled]:
        return await self._writer.gather(_CANCEL, cancellations)

    async def cancel_job(self, organization: str, job_id: str, actor: str, text: str | None) -> bool:
        return await self._act(lambda tx: cancelling.cancel_job(tx, organization, job_id, actor, text))

    async def postpone(self, organization: str, task_id: str, run_at_us: int) -> bool:
        return await self._act(lambda tx: cancelling.postpone(tx, organization, task_id, run_at_us))

    async def redrive(self, redrives: Sequence[Redrive]) -> list[TaskState | PerdureError]:
        return await self._writer.gather(_REDRIVE, redrives)

    async def specified(self, organization: str, task_ids: Sequence[str]) -> list[Specified | None]:
        return await self._readers.read(lambda tx: redriving.specified(tx, organization, task_ids))

    async def discard(self, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
        return await self._act(lambda tx: redriving.discard(tx, organization, task_ids, actor))

    async def purge(self, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
        return await self._act(lambda tx: redriving.purge(tx, organization, task_ids, actor))

    async def purge_queue(self, organization: str, queue: str, actor: str, limit: int) -> Swept:
        return await self._act(lambda tx: cancelling.purge_queue(tx, organization, queue, actor, limit))

    async def trip_breaker(self, organization: str, kind: str, open_us: int, actor: str) -> BreakerTurn:
        return await self._act(lambda tx: breakers.trip(tx, organization, kind, open_us, actor))

    async def reset_breaker(self, organization: str, kind: str, actor: str) -> BreakerTurn:
        return await self._act(lambda tx: breakers.reset(tx, organization, kind, actor))

    async def promote(self, limit: int) -> Swept:
        return await self._act(lambda tx: sweeping.promote(tx, limit))

    async def expire(self, limit: int) -> Swept:
        return await self._act(lambda tx: sweeping.expire(tx, limit))

    async def holding(self) -> bool:
        return bool(await self._readers.read(lambda tx: tx.value("held_any")))

    async def find_doubtful(self, limit: int) -> list[Doubtful]:
        return await self._readers.read(lambda tx: doubting.find_doubtful(tx, limit))

    async def suspend_losses(self, until_us: int) -> None:
        await self._act(lambda tx: doubting.suspend_losses(tx, until_us))

    async def losses_suspended_until(self) -> int:
        return await self._readers.read(doubting.losses_suspended_until)

    async def cascade(self, limit: int, grace_us: int = limits.CANCEL_GRACE_DEFAULT_US) -> Swept:
        return await self._act(lambda tx: sweeping.cascade(tx, limit, grace_us))

    async def fail_unroutable(self, after_us: int, active_us: int, limit: int) -> Swept:
        return await self._act(lambda tx: sweeping.fail_unroutable(tx, after_us, active_us, limit))

    async def retain(self, retention: Retention, limit: int) -> Swept:
        return await self._act(lambda tx: retaining.retain(tx, retention, limit))

    async def now_us(self) -> int:
        return await self._readers.read(lambda tx: tx.now_us)

    async def _act(self, act: Callable[[Transaction], T]) -> T:
        answers: list[Any] = await self._writer.gather(_ACT, [act])
        return answers[0]  # type: ignore[no-any-return]
