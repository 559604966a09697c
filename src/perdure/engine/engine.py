"""The operations in one hand. Each method is one file beside this one; nothing here decides anything."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from perdure.ambient import Chance, Clock, Ids
from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.outcome import Outcome
from perdure.engine.act_on_matching import ActOnMatching, Matching, Step
from perdure.engine.add_tasks import AddTasks
from perdure.engine.cancel import Cancel
from perdure.engine.cascade import Cascade
from perdure.engine.claim import Claim
from perdure.engine.definitions import Document, Documents
from perdure.engine.duties import Duty, DutyRunner
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.expire import Expire
from perdure.engine.fire_schedules import FireSchedules
from perdure.engine.flow import FlowControl, FlowOperations
from perdure.engine.kinds import Kind, Kinds, Names
from perdure.engine.lose import Lose
from perdure.engine.parts_taken import PartsTaken
from perdure.engine.promote import Promote
from perdure.engine.queues import Queues
from perdure.engine.redrive import DeadLetters
from perdure.engine.renew import Renew
from perdure.engine.report import TakeReports
from perdure.engine.requests import JobRequest, KindDefinition, NewTask, Principal, TaskRequest
from perdure.engine.retain import Retain
from perdure.engine.retry_job import RetryJob
from perdure.engine.retry_policies import RetryPolicies
from perdure.engine.schedule_views import ScheduleOperations
from perdure.engine.schedule_work import ScheduleWork
from perdure.engine.schedules import Scheduling
from perdure.engine.settle import Settle
from perdure.engine.settle_within import settle_within, settle_within_async
from perdure.engine.submit import Submit
from perdure.engine.submit_job import SubmitJob
from perdure.engine.unroutable import FailUnroutable
from perdure.engine.wait import WaitEnded
from perdure.engine.workers import Workers
from perdure.engine.zones import Zones
from perdure.errors import PerdureError
from perdure.store.definitions import DefinitionType
from perdure.store.job_ledger import Grown, JobRetried
from perdure.store.ledger import (
    Cancelled,
    Control,
    JobSubmitted,
    ParentResult,
    Renewed,
    Reported,
    Settled,
    Submitted,
    Taker,
    WorkerInfo,
    WorkerOrder,
)
from perdure.store.store import Store
from perdure.store.views import Ended, Views
from perdure.store.wakeups import Subscription, Topic

__all__ = ["Duty", "DutyRunner", "Engine", "Operations"]


class Operations(Protocol):
    """What `Engine` offers, and the client of a gateway in its place. All of `WorkSource` is part of it."""

    views: Views
    schedules: ScheduleOperations
    flow: FlowOperations

    # submitting
    async def submit(self, requests: Sequence[TaskRequest], by: Principal) -> list[Submitted | PerdureError]: ...
    async def submit_job(self, request: JobRequest, by: Principal) -> JobSubmitted: ...
    def submit_within(
        self, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Submitted | PerdureError]: ...
    async def submit_within_async(
        self, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Submitted | PerdureError]: ...

    # working
    async def declare(self, kinds: Sequence[KindDefinition], by: Principal) -> None: ...
    async def kinds(self, by: Principal) -> list[Kind]: ...
    async def register(self, worker: WorkerInfo) -> WorkerOrder: ...
    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder: ...
    async def leave(self, worker_id: str) -> None: ...
    async def claim(
        self, worker_id: str, count: int, request_id: str | None = None, *, wait: float = 0.0
    ) -> list[Lease]: ...
    def stand_by(self, worker_id: str, count: int, taker: Taker, request: str | None = None) -> Callable[[], None]: ...
    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]: ...
    async def control(self, worker_id: str) -> list[Control]: ...
    async def inputs(self, hold: Hold) -> Mapping[str, ParentResult]: ...
    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]: ...
    async def add_tasks(self, hold: Hold, tasks: Sequence[NewTask], ran_us: int = 0) -> Grown: ...
    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]: ...
    def settle_within(self, connection: Any, hold: Hold, result: Any, summary: str | None = None) -> None: ...
    async def settle_within_async(
        self, connection: Any, hold: Hold, result: Any, summary: str | None = None
    ) -> None: ...
    def subscribe(self) -> Subscription: ...

    # operating
    async def cancel(
        self, task_ids: Sequence[str], by: Principal, *, text: str | None = None, note: str | None = None
    ) -> list[Cancelled]: ...
    async def cancel_job(self, job_id: str, by: Principal, text: str | None = None) -> bool: ...
    async def retry_job(self, job_id: str, by: Principal) -> JobRetried: ...
    async def redrive(
        self, task_ids: Sequence[str], by: Principal, payload: Any = None
    ) -> list[PerdureError | str]: ...
    async def act_on_matching(self, asked: Matching, by: Principal) -> Step: ...
    async def discard(self, task_ids: Sequence[str], by: Principal) -> list[bool]: ...
    async def purge(self, task_ids: Sequence[str], by: Principal) -> list[bool]: ...
    async def pause_queue(self, queue: str, by: Principal) -> None: ...
    async def resume_queue(self, queue: str, by: Principal) -> None: ...
    async def configure_queue(
        self,
        queue: str,
        by: Principal,
        *,
        dead_letters: bool | None = None,
        depth: int | None = None,
        unlimited: bool = False,
    ) -> None: ...
    async def purge_queue(self, queue: str, by: Principal) -> int: ...
    async def definition(self, type: DefinitionType, name: str, by: Principal) -> Document | None: ...
    async def put_definition(
        self, type: DefinitionType, name: str, value: Mapping[str, Any], by: Principal, expected: str | None = None
    ) -> Document: ...
    async def delete_definition(
        self, type: DefinitionType, name: str, by: Principal, expected: str | None = None
    ) -> bool: ...
    async def order_worker(self, worker_id: str, order: WorkerOrder, by: Principal) -> None: ...

    # waiting
    async def wait_ended(
        self,
        organization: str,
        task_ids: Sequence[str],
        timeout: float | None,
        any_of: bool = False,
        *,
        known: bool = False,
    ) -> list[Ended]: ...

    # duties
    def duties(self) -> list[Duty]: ...
    def duty_runner(self) -> AbstractAsyncContextManager[object]: ...

    async def close(self) -> None: ...


class Engine:
    """The operations on one store. Meets `Operations` and the worker's `WorkSource`."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        chance: Chance,
        settings: EngineSettings | None = None,
    ) -> None:
        self.settings = settings = settings or EngineSettings()
        self.views = store.views
        ledger, names, parts = store.ledger, Names.fresh(), PartsTaken()
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._chance = chance
        self._policies = RetryPolicies()
        self._kinds = Kinds(store.definitions, clock, settings, names)
        self._submit = Submit(ledger, self._kinds, names, ids, clock, settings)
        self._submit_job = SubmitJob(ledger, self._kinds, ids, self._submit)
        self._add_tasks = AddTasks(ledger, self._kinds, self._submit)
        self._claim = Claim(ledger, ids, settings.priority_ageing_us)
        self._renew = Renew(ledger)
        self._report = TakeReports(ledger, parts)
        self._settle = Settle(ledger, chance, self._policies, parts)
        self._cancel = Cancel(ledger, store.wakeups, settings.cancel_grace_us)
        self._retry_job = RetryJob(ledger)
        self._dead_letters = DeadLetters(ledger, self._kinds, settings.payload_max_bytes)
        self._act_on_matching = ActOnMatching(store.views, self._dead_letters, self._cancel)
        self._queues = Queues(ledger, store.definitions, store.wakeups, names.queue)
        self._documents = Documents(store.definitions, self._kinds, names, store.wakeups)
        self.flow: FlowOperations = FlowControl(ledger, store.views, self._documents, self._kinds)
        self._workers = Workers(ledger, store.wakeups, names, self._claim)
        self._wait = WaitEnded(store.views, store.wakeups.subscribe)
        work = ScheduleWork(self._kinds, names, ids, clock, settings.payload_max_bytes)
        zones = Zones()
        self.schedules: ScheduleOperations = Scheduling(store.schedules, ledger, store.wakeups, work, zones)
        self._fire: Callable[[], Duty] = lambda: FireSchedules(store.schedules, work, zones, settings.cancel_grace_us)

    async def submit(self, requests: Sequence[TaskRequest], by: Principal) -> list[Submitted | PerdureError]:
        """Submit tasks; one answer per request, in order."""
        return await self._submit(requests, by)

    async def submit_job(self, request: JobRequest, by: Principal) -> JobSubmitted:
        """Submit a DAG of tasks. Raises a `Refused` that names task and field."""
        return await self._submit_job(request, by)

    def submit_within(
        self, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Submitted | PerdureError]:
        """Submit inside the caller's own transaction, on the caller's thread."""
        return self._submit.within(self._store.caller, connection, requests, by)

    async def submit_within_async(
        self, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Submitted | PerdureError]:
        """Submit inside the caller's own transaction, through any connection."""
        return await self._submit.within_async(self._store.caller, connection, requests, by)

    async def declare(self, kinds: Sequence[KindDefinition], by: Principal) -> None:
        """Store kinds as their workers have them. Raises `Invalid` with the field."""
        await self._kinds.declare(kinds, by)

    async def kinds(self, by: Principal) -> list[Kind]:
        """The kinds that are known, by name."""
        known = await self._kinds.of(by.organization)
        return [known[name] for name in sorted(known)]

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Make a worker known; what operators ordered for it is returned."""
        return await self._workers.register(worker)

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Note that a worker is there; what operators ordered is returned."""
        return await self._workers.heartbeat(worker_id, capacity)

    async def workers_seen(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """Note that many workers are there; what operators ordered each is returned."""
        return await self._workers.seen(worker_ids)

    async def worker_orders(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """What operators ordered many workers."""
        return await self._workers.orders(worker_ids)

    async def leave(self, worker_id: str) -> None:
        """Note that a worker is gone for good."""
        await self._workers.leave(worker_id)

    async def claim(
        self, worker_id: str, count: int, request_id: str | None = None, *, wait: float = 0.0
    ) -> list[Lease]:
        """At most `count` leases, at once; after a lost answer the same, to whoever has its secret `request_id`."""
        return await self._claim(worker_id, count, request_id)

    def stand_by(self, worker_id: str, count: int, taker: Taker, request: str | None = None) -> Callable[[], None]:
        """Let a claim travel with the commit of this event loop that brings an idle worker work; what withdraws it."""
        return self._claim.stand_by(worker_id, count, taker, request)

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """Extend leases; `None` where the attempt is not live any more."""
        return await self._renew(renewals)

    async def control(self, worker_id: str) -> list[Control]:
        """The cancels requested for what a worker holds."""
        return await self._ledger.control(worker_id)

    async def inputs(self, hold: Hold) -> Mapping[str, ParentResult]:
        """How the parents of an attempt's task ended, by name."""
        return await self._ledger.inputs(hold)

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """Store progress, phases, parts, checkpoints and logs."""
        return await self._report(reports)

    async def add_tasks(self, hold: Hold, tasks: Sequence[NewTask], ran_us: int = 0) -> Grown:
        """Add tasks to the job of a running attempt. Raises `LeaseLost`, and a `Refused` that names task and field."""
        return await self._add_tasks(hold, tasks, ran_us)

    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        """End attempts. The same outcome again is harmless."""
        return await self._settle(outcomes)

    def settle_within(self, connection: Any, hold: Hold, result: Any, summary: str | None = None) -> None:
        """Write the receipt of an attempt inside its handler's own transaction. Raises `LeaseLost`."""
        settle_within(self._store.caller, connection, hold, result, summary)

    async def settle_within_async(self, connection: Any, hold: Hold, result: Any, summary: str | None = None) -> None:
        """As `settle_within`, through any connection, without holding the event loop up."""
        await settle_within_async(self._store.caller, connection, hold, result, summary)

    def subscribe(self) -> Subscription:
        """Hints of new work and of control, for a worker."""
        return self._store.wakeups.subscribe(Topic.READY | Topic.CONTROL)

    async def cancel(
        self, task_ids: Sequence[str], by: Principal, *, text: str | None = None, note: str | None = None
    ) -> list[Cancelled]:
        """Request that tasks shall not run, or stop; one answer per task, in order."""
        return await self._cancel(task_ids, by, text, note)

    async def cancel_job(self, job_id: str, by: Principal, text: str | None = None) -> bool:
        """Stop a job; false when it had ended. Raises `NotFound`."""
        return await self._cancel.job(job_id, by, text)

    async def retry_job(self, job_id: str, by: Principal) -> JobRetried:
        """Run again what failed of a job. Raises `NotFound`, and `Conflict` where nothing of it failed."""
        return await self._retry_job(job_id, by)

    async def redrive(self, task_ids: Sequence[str], by: Principal, payload: Any = None) -> list[PerdureError | str]:
        """Run failed tasks again: the id, or why not."""
        return await self._dead_letters.redrive(task_ids, by, payload)

    async def act_on_matching(self, asked: Matching, by: Principal) -> Step:
        """One step of doing something to all tasks that a filter lets through. Raises `Malformed` and `Invalid`."""
        return await self._act_on_matching(asked, by)

    async def discard(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Mark dead letters as done with; false where it is none."""
        return await self._dead_letters.discard(task_ids, by)

    async def purge(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Remove dead letters for good; false where it is none, or its job is still open."""
        return await self._dead_letters.purge(task_ids, by)

    async def pause_queue(self, queue: str, by: Principal) -> None:
        """Claim nothing of a queue from now on."""
        await self._queues.pause(queue, by)

    async def resume_queue(self, queue: str, by: Principal) -> None:
        """Let a queue be claimed again."""
        await self._queues.resume(queue, by)

    async def configure_queue(
        self,
        queue: str,
        by: Principal,
        *,
        dead_letters: bool | None = None,
        depth: int | None = None,
        unlimited: bool = False,
    ) -> None:
        """Choose a queue's dead letters and depth."""
        await self._queues.configure(queue, by, dead_letters=dead_letters, depth=depth, unlimited=unlimited)

    async def purge_queue(self, queue: str, by: Principal) -> int:
        """Cancel all that waits in a queue, and say how much that was."""
        return await self._queues.purge(queue, by)

    async def definition(self, type: DefinitionType, name: str, by: Principal) -> Document | None:
        """The document of a queue, a kind or the organization, or `None`."""
        return await self._documents.get(type, name, by)

    async def put_definition(
        self, type: DefinitionType, name: str, value: Mapping[str, Any], by: Principal, expected: str | None = None
    ) -> Document:
        """Store a document, over the expected one only. Raises `PreconditionFailed`, and `Invalid` with the field."""
        return await self._documents.put(type, name, value, by, expected)

    async def delete_definition(
        self, type: DefinitionType, name: str, by: Principal, expected: str | None = None
    ) -> bool:
        """Remove a document; false when there was none. Raises `PreconditionFailed`."""
        return await self._documents.delete(type, name, by, expected)

    async def order_worker(self, worker_id: str, order: WorkerOrder, by: Principal) -> None:
        """Order a worker to work, pause, drain or stop. Raises `NotFound`."""
        await self._workers.order(worker_id, order, by)

    async def wait_ended(
        self,
        organization: str,
        task_ids: Sequence[str],
        timeout: float | None,
        any_of: bool = False,
        *,
        known: bool = False,
    ) -> list[Ended]:
        """How tasks ended, once they have. `known`: there are such tasks. Raises `WaitTimedOut` and `NotFound`."""
        return await self._wait(organization, task_ids, timeout, any_of, known=known)

    def duties(self) -> list[Duty]:
        """The duties of the system, new ones at each call; tests run them one by one."""
        ledger, settings = self._ledger, self.settings
        return [
            Promote(ledger),
            Expire(ledger),
            Lose(ledger, self._clock, self._chance, self._policies, self._kinds.leases_us),
            Cascade(ledger, settings.cancel_grace_us),
            FailUnroutable(ledger, settings.unroutable_after_us, settings.worker_active_us),
            self._fire(),
            Retain(ledger, settings.kept),
        ]

    def duty_runner(self, observed: Callable[[Duty], Duty] | None = None) -> DutyRunner:
        """A runner of all duties: `async with engine.duty_runner(): ...`. `observed` puts an observer around each."""
        duties = self.duties() if observed is None else [observed(each) for each in self.duties()]
        return DutyRunner(duties, self._ledger, self._store.wakeups, self._clock, self._chance)

    async def close(self) -> None:
        """Tell those who wait that nothing more comes. The store is closed by whoever opened it."""
        await self._wait.close()
