"""Do something to all tasks that a filter lets through: step by step, each step bounded and a place to go on from."""

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.engine.cancel import Cancel
from perdure.engine.quantities import check_count
from perdure.engine.redrive import DeadLetters
from perdure.engine.requests import Principal
from perdure.errors import Invalid, PerdureError
from perdure.store.views import TaskFilter, Views

STEP_DEFAULT_TASKS = 500


class Act(StrEnum):
    """What is done to tasks. All but `cancel` are for dead letters."""

    REQUEUE = "requeue"
    DISCARD = "discard"
    PURGE = "purge"
    CANCEL = "cancel"


class Matching(NamedTuple):
    """What is to be done to which tasks, and how many of them in one step."""

    act: Act
    where: TaskFilter
    """Its states are those of the act."""
    limit: int = STEP_DEFAULT_TASKS
    cursor: str | None = None
    dry_run: bool = False
    """Only count them."""
    rate: int | None = None
    """Let no more than so many of those that are requeued be claimed in a second."""
    text: str | None = None
    """Told with a cancel."""


class Step(NamedTuple):
    """What one step did. `counts` tells how many tasks it was done to, by what became of them."""

    matched: int
    counts: dict[str, int]
    refused: list[tuple[str, PerdureError]]
    """Ids of those that were matched and moved meanwhile, with why it was not done to them."""
    cursor: str | None
    """Where to go on; `None` at the end. Tasks that match only later are not met by going on."""


_CANCELLABLE = (TaskState.PENDING, TaskState.QUEUED, TaskState.LEASED, TaskState.RUNNING, TaskState.RETRYING)
_DONE = {Act.DISCARD: "discarded", Act.PURGE: "purged"}


class ActOnMatching:
    """Acts on tasks by filter. Each task's history tells who did it, as if it had been named."""

    def __init__(self, views: Views, dead_letters: DeadLetters, cancel: Cancel) -> None:
        self._views = views
        self._dead_letters = dead_letters
        self._cancel = cancel

    async def __call__(self, asked: Matching, by: Principal) -> Step:
        """Take the next step. Raises `Malformed` for a bad cursor, and `Invalid` with the field."""
        act, where, limit, cursor, dry_run, rate, text = asked
        check_count(limit, "limit", 1, limits.LIST_MAX_ROWS)
        if rate is not None:
            check_count(rate, "rate", 1, limits.SWEEP_MAX_TASKS)
        page = await self._views.tasks(by.organization, chosen(act, where), limit, cursor)
        task_ids = [each.id for each in page.rows]
        if dry_run or not task_ids:
            return Step(len(task_ids), {}, [], page.cursor)
        counts, refused = await self._do(act, task_ids, by, rate, text)
        return Step(len(task_ids), counts, refused, page.cursor)

    async def _do(
        self, act: Act, task_ids: list[str], by: Principal, rate: int | None, text: str | None
    ) -> tuple[dict[str, int], list[tuple[str, PerdureError]]]:
        if act is Act.CANCEL:
            cancelled = await self._cancel(task_ids, by, text)
            return dict(Counter(str(each.answer) for each in cancelled)), []
        if act is Act.REQUEUE:
            answers = await self._dead_letters.redrive(task_ids, by, rate=rate)
            refused = [(id, each) for id, each in zip(task_ids, answers, strict=True) if isinstance(each, PerdureError)]
            return {"requeued": len(task_ids) - len(refused)}, refused
        mark = self._dead_letters.discard if act is Act.DISCARD else self._dead_letters.purge
        done = await mark(task_ids, by)
        return {_DONE[act]: sum(done)}, [
            (id, Invalid("it is no dead letter any more, or its job is still open"))
            for id, each in zip(task_ids, done, strict=True)
            if not each
        ]


def chosen(act: Act, where: TaskFilter) -> TaskFilter:
    """The filter with the states that the act is for. Raises `Invalid` for one that does not fit it."""
    if where.states:
        raise Invalid(f"{act} is for tasks in states of its own: leave the states out", field="states")
    if act is Act.CANCEL:
        if where.reasons or where.discarded is not None or where.ended_from_us or where.ended_before_us:
            raise Invalid("what has not ended has no reason and no end: filter by something else", field="reasons")
        if where == TaskFilter():
            raise Invalid("say which tasks: kinds, queues, labels, a job or submitters", field="kinds")
        return where._replace(states=_CANCELLABLE)
    discarded = where.discarded if act is Act.PURGE else False
    return where._replace(states=(TaskState.DEAD_LETTERED,), discarded=discarded)
