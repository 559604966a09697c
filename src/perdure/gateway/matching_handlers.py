"""Handlers that do something to all tasks that a filter lets through."""

from typing import Any

from perdure import wire
from perdure.domain import ids
from perdure.engine.act_on_matching import Act, Matching
from perdure.engine.build_task import check_labels
from perdure.engine.engine import Operations
from perdure.gateway.problems import members_of
from perdure.gateway.request import Answer, Request
from perdure.store.views import TaskFilter
from perdure.wire.shapes import instant_us


class MatchingHandlers:
    """What operators do by filter."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def cancel_matching_tasks(self, request: Request) -> Answer:
        """Cancel tasks by filter."""
        body: wire.CancelMatching = request.body
        return await self._step(request, Act.CANCEL, filter_of(body), text=body.reason)

    async def requeue_matching_dead_letters(self, request: Request) -> Answer:
        """Run failed tasks again by filter."""
        body: wire.RequeueMatching = request.body
        return await self._step(request, Act.REQUEUE, dead_letters_of(body), rate=body.rate)

    async def discard_matching_dead_letters(self, request: Request) -> Answer:
        """Mark dead letters as done with by filter."""
        return await self._step(request, Act.DISCARD, dead_letters_of(request.body))

    async def purge_matching_dead_letters(self, request: Request) -> Answer:
        """Remove dead letters for good by filter."""
        body: wire.PurgeMatching = request.body
        return await self._step(request, Act.PURGE, dead_letters_of(body)._replace(discarded=body.discarded))

    async def _step(self, request: Request, act: Act, where: TaskFilter, **more: Any) -> Answer:
        body: wire.MatchingTasks = request.body
        asked = Matching(act, where, body.limit, body.cursor or None, body.dry_run, **more)
        step = await self._operations.act_on_matching(asked, request.by)
        refused = [wire.RefusedTask(id=id, problem=members_of(error)) for id, error in step.refused]
        return Answer(wire.MatchingStep(matched=step.matched, counts=step.counts, refused=refused, cursor=step.cursor))


def filter_of(body: wire.MatchingTasks) -> TaskFilter:
    """Which tasks a body asks for. Raises `Malformed` and `Invalid`."""
    return TaskFilter(
        kinds=tuple(body.kinds),
        queues=tuple(body.queues),
        job=None if body.job is None else ids.parse(body.job, "job", "job"),
        labels=tuple(check_labels(body.labels).items()),
        submitters=tuple(body.submitters),
    )


def dead_letters_of(body: wire.MatchingDeadLetters) -> TaskFilter:
    """Which dead letters a body asks for."""
    return filter_of(body)._replace(
        reasons=tuple(body.reasons),
        ended_from_us=instant_us(body.ended_from),
        ended_before_us=instant_us(body.ended_before),
    )
