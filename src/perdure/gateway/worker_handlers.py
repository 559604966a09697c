"""Handlers of the worker protocol: remote workers do through them what local ones do through the engine."""

from typing import Any, cast

from msgspec import UNSET

from perdure import wire
from perdure.domain import ids
from perdure.domain.attempt import Hold, Lease, LogLine, Part, Progress, Renewal, Report
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import HandedBack, Outcome
from perdure.engine.engine import Operations
from perdure.engine.requests import NewTask, Principal
from perdure.errors import LeaseLost, PerdureError, Refused
from perdure.gateway.access import Forbidden
from perdure.gateway.claim_line import Wanted
from perdure.gateway.claim_pool import ClaimPool
from perdure.gateway.hints import Hints, Seen
from perdure.gateway.outcomes import outcome_of
from perdure.gateway.presence import Presence
from perdure.gateway.problems import members_of
from perdure.gateway.request import Answer, Request
from perdure.gateway.task_handlers import refused_in
from perdure.store.ledger import Reported, SettleAnswer, Settled, WorkerInfo, WorkerOrder
from perdure.store.wakeups import Topic
from perdure.wire.shapes import NULL, body_json, json_body

TOPICS = Topic.READY | Topic.CONTROL


class WorkerHandlers:
    """What remote workers do."""

    def __init__(self, operations: Operations, pool: ClaimPool, hints: Hints, presence: Presence) -> None:
        self._operations = operations
        self._presence = presence
        self._pool = pool
        self._hints = hints

    async def register_worker(self, request: Request) -> Answer:
        """Make a worker known."""
        body: wire.Register = request.body
        worker = WorkerInfo(
            id=ids.parse(body.id, "worker", "id"),
            name=body.name,
            host=body.host,
            pid=body.pid,
            version=body.version,
            build=body.build,
            kinds=tuple(body.kinds),
            queues=tuple(body.queues),
            organizations=_granted(request.by, body.organizations),
            capabilities=tuple(sorted(body.capabilities)),
            capacity=body.capacity,
        )
        order = await self._operations.register(worker)
        self._pool.know(worker)
        self._presence.know(worker.id, order)
        return Answer(wire.Order(order=order.value))

    async def worker_heartbeat(self, request: Request) -> Answer:
        """Note that a worker is there."""
        body: wire.Heartbeat = request.body
        worker_id = ids.parse(body.worker_id, "worker")
        order = await self._operations.heartbeat(worker_id, body.capacity)
        self._presence.know(worker_id, order)
        return Answer(wire.Order(order=order.value))

    async def worker_leave(self, request: Request) -> Answer:
        """Note that a worker is gone for good."""
        worker_id = ids.parse(request.body.worker_id, "worker")
        await self._operations.leave(worker_id)
        self._pool.forget(worker_id)
        self._presence.forget(worker_id)
        return Answer(None, 204)

    async def claim_work(self, request: Request) -> Answer:
        """Lease tasks to a worker, waiting for some."""
        body: wire.ClaimWork = request.body
        worker_id = ids.parse(body.worker_id, "worker")
        told = None if body.order is None else WorkerOrder(body.order)
        wanted = Wanted(worker_id, body.count, ids.parse(body.request_id, "request"), told)
        claimed = await self._pool.claim(wanted, body.wait, request.gone)
        leases = [_shown_lease(each) for each in claimed.leases]
        waited_us = round(claimed.waited_seconds * SECOND_US)
        order: Any = self._presence.order_of(worker_id)
        return Answer(wire.ClaimAnswer(leases=leases, waited_us=waited_us, order=order))

    async def wait_for_hints(self, request: Request) -> Answer:
        """Wait for a hint."""
        query: wire.HintQuery = request.query
        after = self._hints.read_cursor(query.after)
        if after is None:
            return self._hinted(Seen(-1, -1), self._hints.seen)
        topics = TOPICS if query.topic == "any" else Topic[query.topic.upper()]
        return self._hinted(after, await self._hints.next(after, topics, query.wait))

    def _hinted(self, after: Seen, seen: Seen) -> Answer:
        topics: list[Any] = []
        if seen.ready > after.ready:
            topics.append("ready")
        if seen.control > after.control:
            topics.append("control")
        return Answer(wire.Hinted(topics=topics, cursor=self._hints.cursor(seen)))

    async def renew_leases(self, request: Request) -> Answer:
        """Extend leases."""
        body: wire.RenewMany = request.body
        renewals = [
            Renewal(hold_of(each.hold, request.by), each.started, each.delivered, each.ran_us, each.told_us)
            for each in body.renewals
        ]
        renewed = await self._operations.renew(renewals)
        shown = [
            None if each is None else wire.Renewed(lease_us=each.lease_us, cancel_us=each.cancel_us) for each in renewed
        ]
        return Answer(wire.RenewAnswer(renewed=shown))

    async def list_controls(self, request: Request) -> Answer:
        """The cancels for what a worker holds."""
        controls = await self._operations.control(ids.parse(request.query.worker_id, "worker"))
        shown = [wire.TaskControl(attempt_id=each.attempt_id, cancel_us=each.cancel_us) for each in controls]
        return Answer(wire.Controls(controls=shown))

    async def read_inputs(self, request: Request) -> Answer:
        """How the parents of a task ended."""
        found = await self._operations.inputs(hold_of(request.body, request.by))
        inputs = {
            name: wire.ParentInput(
                state=each.state,
                result=NULL if each.result is None else body_json(each.result),
                result_encoding=UNSET if each.result is None else each.result.encoding,
            )
            for name, each in found.items()
        }
        return Answer(wire.Inputs(inputs=inputs))

    async def report_work(self, request: Request) -> Answer:
        """Store progress, phases, parts, checkpoints and logs."""
        body: wire.ReportMany = request.body
        read = [_read_report(each, request.by) for each in body.reports]
        taken = iter(await self._operations.report([each for each in read if isinstance(each, Report)]))
        answers = [next(taken) if isinstance(each, Report) else each for each in read]
        return Answer(wire.ReportAnswer(answers=[_reported(each) for each in answers]), refused=refused_in(answers))

    async def add_tasks(self, request: Request) -> Answer:
        """Add tasks to the job of a running attempt."""
        body: wire.AddTasks = request.body
        tasks = cast("list[NewTask]", body.tasks)
        grown = await self._operations.add_tasks(hold_of(body.hold, request.by), tasks, body.ran_us)
        return Answer(wire.TasksAdded(job_id=grown.job_id, tasks=grown.task_ids, added=grown.added))

    async def settle_work(self, request: Request) -> Answer:
        """End attempts."""
        body: wire.SettleMany = request.body
        return await self._settle([(hold_of(each.hold, request.by), outcome_of(each)) for each in body.settlements])

    async def settle_one(self, request: Request) -> Answer:
        """End one attempt. Raises `LeaseLost`."""
        body: wire.SettleOne = request.body
        hold = hold_of(body.hold, request.by)
        [answer] = await self._operations.settle([(hold, outcome_of(body))])
        if answer.answer is SettleAnswer.LEASE_LOST:
            raise lease_lost(hold)
        return Answer(_settled(hold, answer))

    async def hand_back(self, request: Request) -> Answer:
        """Give leases back unused."""
        body: wire.HandBack = request.body
        return await self._settle([(hold_of(each, request.by), HandedBack()) for each in body.holds])

    async def _settle(self, outcomes: list[tuple[Hold, Outcome]]) -> Answer:
        answers = await self._operations.settle(outcomes)
        shown = [_settled(hold, answer) for (hold, _), answer in zip(outcomes, answers, strict=True)]
        return Answer(wire.SettleAnswers(answers=shown))


def hold_of(said: wire.Hold, by: Principal) -> Hold:
    """The hold that a worker names, in the organization of whoever sent it: what the body says of that counts nothing.

    Raises `Malformed` for what is no id.
    """
    return Hold(by.organization, ids.parse(said.task_id), ids.parse(said.attempt_id, "attempt"), said.token)


def lease_lost(hold: Hold) -> LeaseLost:
    """The refusal of a write by an attempt that is not live."""
    return LeaseLost(
        f"attempt {hold.attempt_id} does not hold task {hold.task_id} any more; nothing was changed",
        task_id=hold.task_id,
        attempt_id=hold.attempt_id,
    )


def _granted(by: Principal, said: list[str]) -> tuple[str, ...]:
    for each in said:
        if each != by.organization:
            raise Forbidden(f"{by.name} may not work for organization {each[:100]!r}", field="organizations")
    return (by.organization,)


def _settled(hold: Hold, answer: Settled) -> wire.SettleAnswered:
    problem = members_of(lease_lost(hold)) if answer.answer is SettleAnswer.LEASE_LOST else None
    said: Any = answer.answer.value
    return wire.SettleAnswered(
        answer=said, state=answer.state, delay_us=UNSET if answer.delay_us is None else answer.delay_us, problem=problem
    )


def _reported(answer: Reported | PerdureError) -> wire.ReportAnswered:
    if isinstance(answer, PerdureError):
        return wire.ReportAnswered(problem=members_of(answer))
    return wire.ReportAnswered(replayed=answer.replayed, cancel_us=answer.cancel_us)


def _read_report(said: wire.Report, by: Principal) -> Report | Refused:
    hold = hold_of(said.hold, by)
    try:
        return _report_of(said, hold)
    except Refused as refusal:
        return refusal


def _report_of(said: wire.Report, hold: Hold) -> Report:
    progress, part = said.progress, said.part
    return Report(
        hold,
        None if progress is None else Progress(progress.done, progress.total, progress.succeeded, progress.failed),
        said.phase,
        None if part is None else _part_of(part),
        said.checkpoint,
        said.ran_us,
        tuple(LogLine(each.sequence, each.level, each.message, each.ago_us, each.dropped) for each in said.logs),
    )


def _part_of(said: wire.PartSent) -> Part:
    return Part(
        said.sequence,
        said.key,
        said.named,
        said.sha256,
        json_body(said.data, said.data_encoding, "part.data"),
        said.final,
    )


def _shown_lease(lease: Lease) -> wire.Lease:
    hold = lease.hold
    return wire.Lease(
        hold=wire.Hold(
            organization=hold.organization, task_id=hold.task_id, attempt_id=hold.attempt_id, token=hold.token
        ),
        kind=lease.kind,
        queue=lease.queue,
        priority=lease.priority,
        payload=body_json(lease.payload),
        payload_encoding=lease.payload.encoding,
        attempt=lease.attempt,
        fence=lease.fence,
        generation=lease.generation,
        lease_us=lease.lease_us,
        timeout_us=lease.timeout_us,
        deadline_us=lease.deadline_us,
        start_within_us=lease.start_within_us,
        job_id=lease.job_id,
        name=lease.name,
        parents=lease.parents,
        retry=lease.retry,
        options=lease.options,
        initiator=lease.initiator,
        checkpoint=lease.checkpoint,
        max_attempts=lease.max_attempts,
    )
