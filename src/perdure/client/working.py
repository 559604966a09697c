"""The worker protocol from the worker's side: leases, outcomes and reports as bodies, and back."""

import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perdure import wire
from perdure.ambient import Ids
from perdure.client.problems import error_of
from perdure.client.standing import Standing
from perdure.client.submitting import encoded_added_task
from perdure.client.transport import Lane, Repeat, Request, Transport
from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease, Progress, Renewal, Report
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
from perdure.domain.task import Body
from perdure.engine.requests import NewTask
from perdure.errors import InvariantBroken, PerdureError
from perdure.store.job_ledger import Grown
from perdure.store.ledger import (
    Control,
    ParentResult,
    Renewed,
    Reported,
    SettleAnswer,
    Settled,
    WorkerInfo,
    WorkerOrder,
)
from perdure.wire.shapes import WAIT_MAX_SECONDS, body_json, json_body
from perdure.wire.telling import read_body

UNANSWERED_MAX = 16
"""How many claims without an answer are remembered for one worker; leases of older ones run out by themselves."""
SEND_MAX_BYTES = 4 * 1024 * 1024
"""How much is sent in one request; more goes in several."""


class WorkerCalls:
    """The verbs of a worker, over HTTP. Nothing is repeated here: a worker does so while its leases allow."""

    def __init__(self, transport: Transport, ids: Ids) -> None:
        self._transport = transport
        self._ids = ids
        self._unanswered: dict[str, deque[tuple[str, int]]] = {}
        self._standing: dict[str, Standing] = {}

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Make the worker known."""
        body = wire.Register(
            **{name: _plain(value) for name, value in worker._asdict().items()},
        )
        order = WorkerOrder((await self._ask("register", body, wire.Order)).order)
        self._standing_of(worker.id).hear(order, worker.capacity)
        return order

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Say that the worker is there. While a claim of its own waits, the gateway knows, and tells of orders so."""
        standing = self._standing_of(worker_id)
        order = standing.known(capacity)
        if order is not None:
            return order
        body = msgspec.json.encode(wire.Heartbeat(worker_id=worker_id, capacity=capacity))
        # Once in a while from each of many workers: a connection that is kept for it would lie idle all the time.
        request = Request(
            "POST", "/v1/worker/heartbeat", body, lane=Lane.WORK, repeat=Repeat.NEVER, headers=b"connection: close\r\n"
        )
        answer: wire.Order = await self._transport.ask(request, wire.Order)
        standing.hear(WorkerOrder(answer.order), capacity)
        return WorkerOrder(answer.order)

    async def leave(self, worker_id: str) -> None:
        """Say that the worker is gone for good."""
        with contextlib.suppress(PerdureError):
            await self._give_back_unanswered(worker_id)
        self._unanswered.pop(worker_id, None)
        self._standing.pop(worker_id, None)
        await self._ask("leave", wire.Leave(worker_id=worker_id), None)

    async def claim(self, worker_id: str, count: int, request_id: str | None, wait: float) -> list[Lease]:
        """At most `count` leases; when there is no work, the gateway waits for some, at most `wait` seconds.

        A claim whose answer was lost is asked for again under the same request id first, so that what it leased comes
        here and nowhere else. Durations are told from before the request was sent, however long it waited.
        """
        if count <= 0:
            return []
        again = self._again(worker_id)
        asked = again or (request_id or self._ids.new(), min(count, limits.CLAIM_MAX_TASKS))
        # A repeated claim does not wait: what it had got is what matters.
        wait = min(wait, WAIT_MAX_SECONDS) if again is None else 0.0
        try:
            return await self._claim(worker_id, *asked, wait)
        except BaseException:
            # Whatever went wrong, a cancel included: the gateway may have leased them.
            self._unanswered.setdefault(worker_id, deque(maxlen=UNANSWERED_MAX)).append(asked)
            raise

    async def _claim(self, worker_id: str, request_id: str, count: int, wait: float) -> list[Lease]:
        standing = self._standing_of(worker_id)
        told: Any = standing.order
        body = msgspec.json.encode(
            wire.ClaimWork(worker_id=worker_id, request_id=request_id, count=count, wait=wait, order=told)
        )
        request = Request("POST", "/v1/worker/claim", body, wait=wait, lane=Lane.WORK, repeat=Repeat.NEVER)
        with standing.claiming(wait):
            answer: wire.ClaimAnswer = await self._transport.ask(request, wire.ClaimAnswer)
            if answer.order is not None:
                standing.hear(WorkerOrder(answer.order))
        return [_lease(each, answer.waited_us) for each in answer.leases]

    def _standing_of(self, worker_id: str) -> Standing:
        return self._standing.setdefault(worker_id, Standing())

    async def _give_back_unanswered(self, worker_id: str) -> None:
        """Hand back what claims leased whose answers nobody saw, instead of letting it run out."""
        while (asked := self._again(worker_id)) is not None:
            leases = await self._claim(worker_id, *asked, 0.0)
            if leases:
                await self.settle([(lease.hold, HandedBack()) for lease in leases])

    def _again(self, worker_id: str) -> tuple[str, int] | None:
        waiting = self._unanswered.get(worker_id)
        if not waiting:
            return None
        asked = waiting.popleft()
        if not waiting:
            del self._unanswered[worker_id]
        return asked

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """Extend leases, all in one request."""
        answers: list[Renewed | None] = []
        for start in range(0, len(renewals), limits.RENEW_MAX_ITEMS):
            some = renewals[start : start + limits.RENEW_MAX_ITEMS]
            body = wire.RenewMany(
                renewals=[
                    wire.Renewal(
                        hold=_hold_body(each.hold),
                        started=each.started,
                        delivered=each.delivered,
                        ran_us=each.ran_us,
                        told_us=each.told_us,
                    )
                    for each in some
                ]
            )
            answer: wire.RenewAnswer = await self._ask("renew", body, wire.RenewAnswer)
            self._expect(len(some), len(answer.renewed))
            answers += [None if each is None else Renewed(each.lease_us, each.cancel_us) for each in answer.renewed]
        return answers

    async def control(self, worker_id: str) -> list[Control]:
        """The cancels requested for what the worker holds."""
        request = Request(
            "GET", "/v1/worker/control", query={"worker_id": worker_id}, lane=Lane.WORK, repeat=Repeat.NEVER
        )
        answer: wire.Controls = await self._transport.ask(request, wire.Controls)
        return [Control(each.attempt_id, each.cancel_us) for each in answer.controls]

    async def inputs(self, hold: Hold) -> Mapping[str, ParentResult]:
        """How the parents of an attempt's task ended."""
        answer: wire.Inputs = await self._ask("inputs", _hold_body(hold), wire.Inputs)
        return {name: ParentResult(each.state, read_body(each, "result")) for name, each in answer.inputs.items()}

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """Store progress, phases, parts, checkpoints and logs."""
        answers: list[Reported | PerdureError] = []
        items = [msgspec.json.encode(_report_body(each)) for each in reports]
        weights = [1 + len(each.logs) for each in reports]
        for some in _batches(items, limits.SETTLE_MAX_ITEMS, weights):
            answer: wire.ReportAnswer = await self._send("report", "reports", some, wire.ReportAnswer)
            self._expect(len(some), len(answer.answers))
            answers += [
                error_of(each.problem) if each.problem is not None else Reported(each.replayed, each.cancel_us)
                for each in answer.answers
            ]
        return answers

    async def add_tasks(self, hold: Hold, tasks: Sequence[NewTask], ran_us: int) -> Grown:
        """Add tasks to the job of an attempt, all in one request: they are one transaction."""
        head = msgspec.json.encode({"hold": _hold_body(hold), "ran_us": ran_us})
        body = head[:-1] + b',"tasks":[' + b",".join(encoded_added_task(each) for each in tasks) + b"]}"
        answer: wire.TasksAdded = await self._post("add-tasks", body, wire.TasksAdded)
        return Grown(answer.job_id, answer.tasks, answer.added)

    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        """End attempts. What was settled already is answered `replayed`."""
        answers: list[Settled] = []
        items = [
            msgspec.json.encode(
                wire.SettleOne(
                    hold=_hold_body(hold),
                    outcome=_outcome_body(outcome),
                    ran_us=outcome.ran_us,
                    told_us=outcome.told_us if isinstance(outcome, Stopped) else None,
                )
            )
            for hold, outcome in outcomes
        ]
        for some in _batches(items, limits.SETTLE_MAX_ITEMS):
            answer: wire.SettleAnswers = await self._send("settle", "settlements", some, wire.SettleAnswers)
            self._expect(len(some), len(answer.answers))
            answers += [
                Settled(SettleAnswer(each.answer), each.state, delay_us=_said(each.delay_us)) for each in answer.answers
            ]
        return answers

    async def _ask(self, verb: str, body: Any, answer: Any) -> Any:
        return await self._post(verb, msgspec.json.encode(body), answer)

    async def _send(self, verb: str, field: str, items: Sequence[bytes], answer: Any) -> Any:
        return await self._post(verb, b'{"%s":[%s]}' % (field.encode(), b",".join(items)), answer)

    async def _post(self, verb: str, body: bytes, answer: Any) -> Any:
        request = Request("POST", f"/v1/worker/{verb}", body, lane=Lane.WORK, repeat=Repeat.NEVER)
        return await self._transport.ask(request, answer)

    def _expect(self, wanted: int, got: int) -> None:
        if wanted != got:
            raise InvariantBroken(f"the gateway at {self._transport.url} gave {got} answers to {wanted} items")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _hold_body(hold: Hold) -> wire.Hold:
    return wire.Hold(organization=hold.organization, task_id=hold.task_id, attempt_id=hold.attempt_id, token=hold.token)


def _lease(body: wire.Lease, waited_us: int) -> Lease:
    hold = body.hold
    return Lease(
        hold=Hold(hold.organization, hold.task_id, hold.attempt_id, hold.token),
        kind=body.kind,
        queue=body.queue,
        priority=body.priority,
        payload=json_body(body.payload, body.payload_encoding, "payload"),
        attempt=body.attempt,
        fence=body.fence,
        generation=body.generation,
        lease_us=body.lease_us + waited_us,
        timeout_us=body.timeout_us,
        deadline_us=body.deadline_us + waited_us,
        start_within_us=None if body.start_within_us is None else body.start_within_us + waited_us,
        job_id=body.job_id,
        name=body.name,
        parents=body.parents,
        retry=body.retry,
        options=body.options,
        initiator=body.initiator,
        checkpoint=body.checkpoint,
        max_attempts=body.max_attempts,
    )


def _report_body(report: Report) -> wire.Report:
    part = None
    if report.part is not None:
        said = report.part
        part = wire.PartSent(
            sequence=said.sequence,
            key=said.key,
            named=said.named,
            sha256=said.sha256,
            data=body_json(said.data),
            data_encoding=said.data.encoding,
            final=said.final,
        )
    return wire.Report(
        hold=_hold_body(report.hold),
        progress=None if report.progress is None else _progress_body(report.progress),
        phase=report.phase,  # type: ignore[arg-type]
        part=part,
        checkpoint=report.checkpoint,
        ran_us=report.ran_us,
        logs=[wire.LogLineSent(**each._asdict()) for each in report.logs],
    )


def _progress_body(progress: Progress) -> wire.ProgressSent:
    return wire.ProgressSent(**progress._asdict())


def _outcome_body(outcome: Outcome) -> Any:
    match outcome:
        case Succeeded(result, summary):
            return wire.Succeeded(**_result(result), summary=summary)
        case SucceededPartly(result, summary):
            return wire.SucceededPartly(**_result(result), summary=summary)
        case Failed(error, permanent, reason, retry_after_us):
            text = wire.FailureText(type=error.type, message=error.message, traceback=error.traceback)
            return wire.Failed(
                error=text,
                permanent=permanent,
                reason=reason,  # type: ignore[arg-type]
                retry_after_us=retry_after_us,
            )
        case Snoozed(delay_us):
            return wire.Snoozed(delay_us=delay_us)
        case GaveUp(why):
            return wire.GaveUp(reason=why)
        case HandedBack():
            return wire.HandedBack()
        case Stopped(killed):
            return wire.Stopped(killed=killed)
        case NotStarted():
            return wire.NotStarted()


def _result(body: Body) -> dict[str, Any]:
    return {"result": body_json(body), "result_encoding": body.encoding}


def _batches(items: Sequence[bytes], most: int, weights: Sequence[int] | None = None) -> list[list[bytes]]:
    """Items in requests of at most `SEND_MAX_BYTES` and `most` items, or as many as weigh that together."""
    batches: list[list[bytes]] = []
    size = weight = 0
    for item, heavy in zip(items, weights or [1] * len(items), strict=True):
        if not batches or size + len(item) > SEND_MAX_BYTES or weight + heavy > most:
            batches.append([])
            size = weight = 0
        batches[-1].append(item)
        size += len(item) + 1
        weight += heavy
    return batches


def _said(number: int | msgspec.UnsetType) -> int | None:
    return None if isinstance(number, msgspec.UnsetType) else number
