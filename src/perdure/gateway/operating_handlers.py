"""Handlers about queues, workers, dead letters, kinds, and the system at a glance."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from perdure import wire
from perdure.domain import ids, limits
from perdure.domain.states import TaskState
from perdure.domain.unique import SubmitOutcome
from perdure.engine.engine import Operations
from perdure.engine.kinds import Kind
from perdure.errors import Malformed, NotFound, PerdureError
from perdure.gateway.request import Answer, Request
from perdure.gateway.task_handlers import filter_of, refusal, refused_in, shown_page, task_id
from perdure.store.ledger import WorkerOrder
from perdure.wire.telling import counts, told


class Told(NamedTuple):
    """What the gateway tells of itself."""

    version: str
    settings: Mapping[str, Any]
    limits: Mapping[str, int | float]


class OperatingHandlers:
    """What operators do."""

    def __init__(self, operations: Operations, of_itself: Told) -> None:
        self._operations = operations
        self._of_itself = of_itself

    async def list_queues(self, request: Request) -> Answer:
        """List queues."""
        queues = await self._operations.views.queues(request.by.organization)
        return Answer(wire.Queues(queues=[told(each, wire.Queue) for each in queues]))

    async def configure_queue(self, request: Request) -> Answer:
        """Choose a queue's policy."""
        body: wire.ConfigureQueue = request.body
        name = queue_name(request)
        await self._operations.configure_queue(
            name, request.by, dead_letters=body.dead_letters, depth=body.depth, unlimited=body.unlimited
        )
        return Answer(wire.QueueChanged(name=name))

    async def pause_queue(self, request: Request) -> Answer:
        """Claim nothing of a queue from now on."""
        await self._operations.pause_queue(queue_name(request), request.by)
        return Answer(wire.QueueChanged(name=queue_name(request)))

    async def resume_queue(self, request: Request) -> Answer:
        """Let a queue be claimed again."""
        await self._operations.resume_queue(queue_name(request), request.by)
        return Answer(wire.QueueChanged(name=queue_name(request)))

    async def purge_queue(self, request: Request) -> Answer:
        """Cancel all that waits in a queue."""
        return Answer(wire.Purged(purged=await self._operations.purge_queue(queue_name(request), request.by)))

    async def list_workers(self, request: Request) -> Answer:
        """List workers."""
        query: wire.ActiveQuery = request.query
        active_us = None if query.all else round(query.active * limits.SECOND_US)
        workers = await self._operations.views.workers(request.by.organization, active_us)
        return Answer(wire.Workers(workers=[told(each, wire.Worker) for each in workers]))

    async def drain_worker(self, request: Request) -> Answer:
        """Have a worker finish what it holds and leave."""
        return await self._order(request, WorkerOrder.DRAIN)

    async def pause_worker(self, request: Request) -> Answer:
        """Have a worker claim nothing."""
        return await self._order(request, WorkerOrder.PAUSE)

    async def resume_worker(self, request: Request) -> Answer:
        """Have a worker claim again."""
        return await self._order(request, WorkerOrder.WORK)

    async def revoke_worker(self, request: Request) -> Answer:
        """Have a worker stop; nothing that it writes is taken."""
        return await self._order(request, WorkerOrder.REVOKE)

    async def _order(self, request: Request, order: WorkerOrder) -> Answer:
        worker = ids.parse(request.path["worker_id"], "worker")
        await self._operations.order_worker(worker, order, request.by)
        return Answer(wire.Ordered(id=worker, order=order.value))

    async def list_dead_letters(self, request: Request) -> Answer:
        """List dead letters."""
        query: wire.DeadLetterQuery = request.query
        where = filter_of(query, (TaskState.DEAD_LETTERED,), query.discarded)
        page = await self._operations.views.tasks(
            request.by.organization, where, query.limit, query.cursor or None, query.sort
        )
        return Answer(await shown_page(page))

    async def requeue_dead_letter(self, request: Request) -> Answer:
        """Run a failed task again."""
        wanted = task_id(request)
        [answer] = await self._operations.redrive([wanted], request.by, request.body.payload)
        if isinstance(answer, PerdureError):
            raise answer
        view = await self._operations.views.task(request.by.organization, wanted)
        state = TaskState.QUEUED if view is None else view.state
        return Answer(
            wire.SubmittedTask(id=wanted, state=state, outcome=SubmitOutcome.REQUEUED),
            202,
            ((b"location", b"/v1/tasks/" + wanted.encode()),),
        )

    async def requeue_dead_letters(self, request: Request) -> Answer:
        """Run failed tasks again."""
        body: wire.RequeueMany = request.body
        answers = await self._operations.redrive(body.ids, request.by, body.payload)
        shown = [refusal(each) if isinstance(each, PerdureError) else _requeued(each) for each in answers]
        return Answer(wire.Redriven(tasks=shown), refused=refused_in(answers))

    async def discard_dead_letter(self, request: Request) -> Answer:
        """Mark a dead letter as done with."""
        [done] = await self._operations.discard([task_id(request)], request.by)
        return _done(request, done)

    async def purge_dead_letter(self, request: Request) -> Answer:
        """Remove a dead letter for good."""
        [done] = await self._operations.purge([task_id(request)], request.by)
        return _done(request, done)

    async def discard_dead_letters(self, request: Request) -> Answer:
        """Mark dead letters as done with."""
        return Answer(wire.DeadLettersMarked(done=await self._operations.discard(request.body.ids, request.by)))

    async def purge_dead_letters(self, request: Request) -> Answer:
        """Remove dead letters for good."""
        return Answer(wire.DeadLettersMarked(done=await self._operations.purge(request.body.ids, request.by)))

    async def list_kinds(self, request: Request) -> Answer:
        """List the kinds that are known."""
        return Answer(wire.Kinds(kinds=await self._kinds(request)))

    async def declare_kinds(self, request: Request) -> Answer:
        """Make kinds known."""
        await self._operations.declare(request.body.kinds, request.by)
        return Answer(None, 204)

    async def count_tasks(self, request: Request) -> Answer:
        """Counts, oldest and totals."""
        return Answer(counts(await self._operations.views.overview(request.by.organization)))

    async def show_config(self, request: Request) -> Answer:
        """Settings and limits in effect."""
        own = self._of_itself
        return Answer(
            wire.Config(
                version=own.version,
                settings=dict(own.settings),
                limits=dict(own.limits),
                kinds=await self._kinds(request),
            )
        )

    async def _kinds(self, request: Request) -> list[wire.Kind]:
        return [shown_kind(each) for each in await self._operations.kinds(request.by)]


def _requeued(task_id: str) -> wire.SubmitAnswered:
    return wire.SubmitAnswered(id=task_id, state=TaskState.QUEUED, outcome=SubmitOutcome.REQUEUED)


def queue_name(request: Request) -> str:
    """The name in the path. Raises `Malformed`."""
    name = request.path["queue"]
    if not name or "\x00" in name:
        raise Malformed("this is no name of a queue", field="queue")
    return name


def _done(request: Request, done: bool) -> Answer:
    if not done:
        wanted = request.path["task_id"]
        raise NotFound(f"there is no dead letter {wanted} for which this can be done", what="dead letter", id=wanted)
    return Answer(None, 204)


def shown_kind(kind: Kind) -> wire.Kind:
    """A kind, as it is told."""
    defaults = kind.defaults
    return wire.Kind(
        name=kind.name,
        version=kind.version,
        queue=defaults.queue,
        priority=defaults.priority,
        capabilities=list(defaults.capabilities),
        ttl=_seconds(defaults.ttl_us),
        execution_limit=defaults.execution_limit_us / limits.SECOND_US,
        timeout=_seconds(defaults.timeout_us),
        lease=defaults.lease_us / limits.SECOND_US,
        max_attempts=defaults.retry.max_attempts,
        max_losses=defaults.max_losses,
        on_loss=defaults.on_loss,
        redact=defaults.redact,
        limits=list(defaults.limits),
        fair_by=list(defaults.fair_by),
        paused=kind.paused,
        breaker=defaults.breaker,
        unique=defaults.unique,
        schema=kind.schema,
    )


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / limits.SECOND_US
