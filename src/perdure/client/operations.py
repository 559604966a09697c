"""The operations over HTTP in one hand: an app holds this where it would hold an engine."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from perdure import wire
from perdure.ambient import Ids
from perdure.client.definitions import RemoteDefinitions
from perdure.client.flow import RemoteFlow
from perdure.client.gathering import Gathering
from perdure.client.hints import RemoteHints
from perdure.client.kinds import kind_of
from perdure.client.matching import act_on_matching
from perdure.client.problems import error_of
from perdure.client.schedules import RemoteSchedules
from perdure.client.submitting import batches, encoded_job, encoded_task
from perdure.client.transport import Repeat, Request, Transport
from perdure.client.views import RemoteViews, quoted
from perdure.client.watching import Watch
from perdure.client.working import WorkerCalls
from perdure.domain import ids, limits
from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.outcome import Outcome
from perdure.domain.states import Reason, TaskState
from perdure.engine import encoding
from perdure.engine.act_on_matching import Matching, Step
from perdure.engine.cancel import parse_ids
from perdure.engine.definitions import Document
from perdure.engine.duties import Duty
from perdure.engine.flow import FlowOperations
from perdure.engine.kinds import Kind
from perdure.engine.names import check_prose
from perdure.engine.quantities import check_choice
from perdure.engine.requests import JobRequest, KindDefinition, NewTask, Principal, TaskRequest
from perdure.engine.schedule_views import ScheduleOperations
from perdure.errors import AlreadyEnded, Invalid, Misuse, PerdureError, Refused
from perdure.store.claims import nothing_stands_by
from perdure.store.definitions import DefinitionType
from perdure.store.job_ledger import Grown, JobRetried
from perdure.store.ledger import (
    CancelAnswer,
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
from perdure.store.views import Ended, Views
from perdure.store.wakeups import Subscription

_VERBS = {
    WorkerOrder.WORK: "resume",
    WorkerOrder.PAUSE: "pause",
    WorkerOrder.DRAIN: "drain",
    WorkerOrder.REVOKE: "revoke",
}


class RemoteOperations:
    """The operations of a gateway. Meets `Operations` and the worker's `WorkSource`.

    Who acts is decided by the gateway, from the connection: the principals given here are not sent.
    """

    def __init__(self, transport: Transport, ids: Ids) -> None:
        self._transport = transport
        self._ids = ids
        self._watch = Watch(transport)
        self._worker = WorkerCalls(transport, ids)
        self._definitions = RemoteDefinitions(transport)
        self._gathering = Gathering(self._submit)
        views = RemoteViews(transport, self._watch)
        self.views: Views = views
        self.schedules: ScheduleOperations = RemoteSchedules(transport)
        self.flow: FlowOperations = RemoteFlow(transport, views)

    # Submitting

    async def submit(self, requests: Sequence[TaskRequest], by: Principal) -> list[Submitted | PerdureError]:
        """Submit tasks; one answer per request, in order. An answer that was lost is asked for again."""
        if len(requests) > limits.SUBMIT_MAX_TASKS:
            raise Invalid(
                f"one submit takes {limits.SUBMIT_MAX_TASKS:,} tasks at most, not {len(requests):,}: split it",
                field="tasks",
            )
        items: list[bytes | Refused] = [self._item(request) for request in requests]
        stored: list[Submitted | PerdureError] = []
        for batch in batches(item for item in items if isinstance(item, bytes)):
            stored += await self._gathering(batch)
        rest = iter(stored)
        return [item if isinstance(item, Refused) else next(rest) for item in items]

    def _item(self, request: TaskRequest) -> bytes | Refused:
        try:
            return encoded_task(request, self._ids)
        except Refused as refusal:
            return refusal

    async def _submit(self, batch: Sequence[bytes]) -> list[Submitted | PerdureError]:
        if len(batch) == 1:
            try:
                one: wire.SubmittedTask = await self._post("/v1/tasks", batch[0], wire.SubmittedTask)
            except Refused as refusal:
                return [refusal]
            return [Submitted(one.id, one.state, one.replayed, one.outcome)]
        answer: wire.SubmittedTasks = await self._post("/v1/tasks", b"[" + b",".join(batch) + b"]", wire.SubmittedTasks)
        return [_item_answer(each) for each in answer.tasks]

    async def submit_job(self, request: JobRequest, by: Principal) -> JobSubmitted:
        """Submit a DAG of tasks. Raises a `Refused` that names task and field."""
        answer: wire.SubmittedJob = await self._post("/v1/jobs", encoded_job(request, self._ids), wire.SubmittedJob)
        return JobSubmitted(answer.id, answer.tasks, answer.replayed)

    def submit_within(
        self, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Submitted | PerdureError]:
        """Refused: a gateway has no part in a transaction of the caller's."""
        raise Misuse(
            "an app of a gateway cannot submit inside a transaction of yours, because the store is not at hand here:"
            " submit after it has committed, with an idempotency_key, or open the app on the store itself"
        )

    async def submit_within_async(
        self, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Submitted | PerdureError]:
        """Refused, as `submit_within`."""
        return self.submit_within(connection, requests, by)

    # Working

    async def declare(self, kinds: Sequence[KindDefinition], by: Principal) -> None:
        """Make kinds known as their workers have them. Raises `Invalid` with the field."""
        if kinds:
            await self._post("/v1/kinds", msgspec.json.encode({"kinds": list(kinds)}), None)

    async def kinds(self, by: Principal) -> list[Kind]:
        """The kinds that are known, by name."""
        answer: wire.Kinds = await self._transport.ask(Request("GET", "/v1/kinds"), wire.Kinds)
        return [kind_of(each) for each in answer.kinds]

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Make the worker known; what operators ordered for this id is returned."""
        return await self._worker.register(worker)

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Say that the worker is there; what operators ordered is returned."""
        return await self._worker.heartbeat(worker_id, capacity)

    async def leave(self, worker_id: str) -> None:
        """Say that the worker is gone for good."""
        await self._worker.leave(worker_id)

    async def claim(
        self, worker_id: str, count: int, request_id: str | None = None, *, wait: float = 0.0
    ) -> list[Lease]:
        """At most `count` leases, waiting for some at the gateway; after a lost answer the same ones."""
        return await self._worker.claim(worker_id, count, request_id, wait)

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """Extend leases; `None` where the attempt is not live any more."""
        return await self._worker.renew(renewals)

    async def control(self, worker_id: str) -> list[Control]:
        """The cancels requested for what the worker holds."""
        return await self._worker.control(worker_id)

    async def inputs(self, hold: Hold) -> Mapping[str, ParentResult]:
        """How the parents of an attempt's task ended, by name."""
        return await self._worker.inputs(hold)

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """Store progress, phases, parts and checkpoints."""
        return await self._worker.report(reports)

    async def add_tasks(self, hold: Hold, tasks: Sequence[NewTask], ran_us: int = 0) -> Grown:
        """Add tasks to the job of a running attempt. The same again adds nothing twice."""
        return await self._worker.add_tasks(hold, tasks, ran_us)

    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        """End attempts. Sending the same outcome again is harmless."""
        return await self._worker.settle(outcomes)

    def settle_within(self, connection: Any, hold: Hold, result: Any, summary: str | None = None) -> None:
        """Refused: a gateway has no part in a transaction of the handler's."""
        raise Misuse(
            "a worker of a gateway cannot settle inside a transaction of yours, because the store is not at hand here:"
            " run this handler by a worker on the store itself"
        )

    async def settle_within_async(self, connection: Any, hold: Hold, result: Any, summary: str | None = None) -> None:
        """Refused, as `settle_within`."""
        self.settle_within(connection, hold, result, summary)

    def stand_by(self, worker_id: str, count: int, taker: Taker, request: str | None = None) -> Callable[[], None]:
        """Nothing: the gateway commits, and a claim that waits there tells of work."""
        return nothing_stands_by

    def subscribe(self) -> Subscription:
        """Hints of control: of new work a waiting claim tells."""
        return RemoteHints(self._transport)

    # Operating

    async def cancel(
        self, task_ids: Sequence[str], by: Principal, *, text: str | None = None, note: str | None = None
    ) -> list[Cancelled]:
        """Request that tasks shall not run, or stop; one answer per task, in order."""
        checked = parse_ids(task_ids)
        _check_prose(text, note)
        if not checked:
            return []
        body = msgspec.json.encode(wire.CancelTasks(ids=checked, reason=text, note=note))
        answer: wire.CancelledTasks = await self._post("/v1/tasks/cancel", body, wire.CancelledTasks)
        return [Cancelled(CancelAnswer(each.answer), _state(each.state), _reason(each.reason)) for each in answer.tasks]

    async def cancel_job(self, job_id: str, by: Principal, text: str | None = None) -> bool:
        """Stop a job; false when it had ended. Raises `NotFound`."""
        _check_prose(text, None)
        path = f"/v1/jobs/{ids.parse(job_id, 'job')}/cancel"
        try:
            body = msgspec.json.encode(wire.CancelJob(reason=text))
            answer: wire.JobStopping = await self._post(path, body, wire.JobStopping)
        except AlreadyEnded:
            return False
        return not answer.already

    async def retry_job(self, job_id: str, by: Principal) -> JobRetried:
        """Run again what failed of a job. Raises `NotFound`, and `Conflict` where nothing of it failed."""
        # The same again would be refused, because the first one has run: only what did not arrive is sent again.
        path = f"/v1/jobs/{ids.parse(job_id, 'job')}/retry"
        answer: wire.JobRetried = await self._post(path, None, wire.JobRetried, Repeat.UNSENT)
        return JobRetried(answer.redriven, answer.revived)

    async def redrive(self, task_ids: Sequence[str], by: Principal, payload: Any = None) -> list[PerdureError | str]:
        """Run failed tasks again: the id, or why not."""
        checked = parse_ids(task_ids)
        if not checked:
            return []
        said = {"ids": checked}
        body = msgspec.json.encode(said)
        if payload is not None:
            body = body[:-1] + b',"payload":' + encoding.encode(payload, "payload", limits.PAYLOAD_MAX_BYTES) + b"}"
        # The same again would be refused, because the first one has run: only what did not arrive is sent again.
        answer: wire.Redriven = await self._post("/v1/dead-letters/requeue", body, wire.Redriven, Repeat.UNSENT)
        return [str(each.id) if each.problem is None else error_of(each.problem) for each in answer.tasks]

    async def act_on_matching(self, asked: Matching, by: Principal) -> Step:
        """One step of doing something to all tasks that a filter lets through. Raises `Malformed` and `Invalid`."""
        return await act_on_matching(self._transport, asked)

    async def discard(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Mark dead letters as done with; false where it is none."""
        return await self._mark("discard", task_ids, Repeat.ALWAYS)

    async def purge(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Remove dead letters for good; false where it is none, or its job is still open."""
        return await self._mark("purge", task_ids, Repeat.UNSENT)

    async def pause_queue(self, queue: str, by: Principal) -> None:
        """Claim nothing of a queue from now on."""
        await self._post(f"/v1/queues/{quoted(queue)}/pause", None, wire.QueueChanged)

    async def resume_queue(self, queue: str, by: Principal) -> None:
        """Let a queue be claimed again."""
        await self._post(f"/v1/queues/{quoted(queue)}/resume", None, wire.QueueChanged)

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
        body = wire.ConfigureQueue(dead_letters=dead_letters, depth=depth, unlimited=unlimited)
        request = Request("PATCH", f"/v1/queues/{quoted(queue)}", msgspec.json.encode(body))
        await self._transport.ask(request, wire.QueueChanged)

    async def purge_queue(self, queue: str, by: Principal) -> int:
        """Cancel all that waits in a queue, and say how much that was."""
        path = f"/v1/queues/{quoted(queue)}/purge"
        answer: wire.Purged = await self._post(path, None, wire.Purged, Repeat.UNSENT)
        return answer.purged

    async def definition(self, type: DefinitionType, name: str, by: Principal) -> Document | None:
        """The document of a queue, a kind or the organization, or `None`."""
        return await self._definitions.get(type, name)

    async def put_definition(
        self, type: DefinitionType, name: str, value: Mapping[str, Any], by: Principal, expected: str | None = None
    ) -> Document:
        """Store a document, over the expected one only. Raises `PreconditionFailed`, and `Invalid` with the field."""
        return await self._definitions.put(type, name, value, expected)

    async def delete_definition(
        self, type: DefinitionType, name: str, by: Principal, expected: str | None = None
    ) -> bool:
        """Remove a document; false when there was none. Raises `PreconditionFailed`."""
        return await self._definitions.delete(type, name, expected)

    async def order_worker(self, worker_id: str, order: WorkerOrder, by: Principal) -> None:
        """Order a worker to work, pause, drain or stop. Raises `NotFound`."""
        wanted = check_choice(order, "order", tuple(WorkerOrder))
        path = f"/v1/workers/{ids.parse(worker_id, 'worker')}/{_VERBS[wanted]}"
        await self._post(path, None, wire.Ordered)

    # Waiting

    async def wait_ended(
        self,
        organization: str,
        task_ids: Sequence[str],
        timeout: float | None,
        any_of: bool = False,
        *,
        known: bool = False,
    ) -> list[Ended]:
        """How tasks ended, once they have; the gateway looks whether they are `known`. Raises `WaitTimedOut` and
        `NotFound`.
        """
        return await self._watch(task_ids, timeout, any_of)

    # Duties are the gateway's

    def duties(self) -> list[Duty]:
        """None: whoever has the store does them."""
        return []

    def duty_runner(self) -> AbstractAsyncContextManager[object]:
        """One that does nothing: whoever has the store does the duties."""
        return contextlib.nullcontext()

    async def close(self) -> None:
        """Tell those who wait that nothing more comes, and let go of the connections."""
        await self._gathering.close()
        await self._watch.close()
        await self._transport.close()

    async def _mark(self, verb: str, task_ids: Sequence[str], repeat: Repeat) -> list[bool]:
        checked = parse_ids(task_ids)
        if not checked:
            return []
        body = msgspec.json.encode(wire.DeadLetterChoice(ids=checked))
        answer: wire.DeadLettersMarked = await self._post(
            f"/v1/dead-letters/{verb}", body, wire.DeadLettersMarked, repeat
        )
        return answer.done

    async def _post(self, path: str, body: bytes | None, answer: Any, repeat: Repeat = Repeat.ALWAYS) -> Any:
        return await self._transport.ask(Request("POST", path, body, repeat=repeat), answer)


def _item_answer(answer: wire.SubmitAnswered) -> Submitted | PerdureError:
    if answer.id is None:
        return error_of(answer.problem or {})
    return Submitted(answer.id, answer.state, answer.replayed, answer.outcome)


def _check_prose(text: str | None, note: str | None) -> None:
    if text is not None:
        check_prose(text, "text", limits.REASON_TEXT_MAX_CHARS)
    if note is not None:
        check_prose(note, "note", limits.NOTE_MAX_CHARS)


def _state(state: TaskState | None) -> TaskState | None:
    return None if state is None else TaskState(state)


def _reason(reason: Reason | None) -> Reason | None:
    return None if reason is None else Reason(reason)
