"""Handlers about tasks: each calls one operation or view."""

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from perdure import wire
from perdure.domain import ids, limits
from perdure.domain.states import TaskState
from perdure.domain.unique import SubmitOutcome
from perdure.engine.engine import Operations
from perdure.engine.names import label_pair
from perdure.errors import AlreadyEnded, Conflict, Invalid, NotFound, PerdureError, Refused, WaitTimedOut
from perdure.gateway.problems import members_of
from perdure.gateway.request import Answer, Request
from perdure.store.ledger import Cancelled, Submitted
from perdure.store.views import Page, TaskFilter, TaskView
from perdure.wire.shapes import instant_us
from perdure.wire.telling import ended_task, told

REPLAYED = (b"idempotency-replayed", b"true")
NOT_NEW = frozenset({SubmitOutcome.EXISTING, SubmitOutcome.DEBOUNCED})
"""No task was made."""
PIECE_TASKS = 100
"""How many tasks of a list are stored at once beside other clients."""
PIECE_ROWS = 100
"""How many rows of a page are made in one go."""


class TaskHandlers:
    """What clients do with tasks."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def submit_tasks(self, request: Request) -> Answer:
        """Submit one task, or a list of them."""
        body = request.body
        if request.trace is not None:
            for task in body if isinstance(body, list) else (body,):
                if not isinstance(task, Refused):
                    task.trace = task.trace or request.trace
        if isinstance(body, list):
            return await self._submit_list(request, body)
        if request.key is not None:
            body.idempotency_key = chosen_key(request.key, body.idempotency_key)
        [answer] = await self._operations.submit([body], request.by)
        if isinstance(answer, PerdureError):
            raise answer
        place = (b"location", b"/v1/tasks/" + answer.id.encode())
        outcome = answer.told()
        told_task = wire.SubmittedTask(id=answer.id, state=answer.state, replayed=answer.replayed, outcome=outcome)
        if answer.replayed:
            return Answer(told_task, 200, (place, REPLAYED))
        return Answer(told_task, 200 if outcome in NOT_NEW else 202, (place,))

    async def _submit_list(self, request: Request, items: Sequence[wire.SubmitListed | Refused]) -> Answer:
        """Items that are refused already, while they were read, are told in their places."""
        if request.key is not None:
            for place, item in enumerate(items):
                if not isinstance(item, Refused) and item.idempotency_key is None:
                    item.idempotency_key = key_in_list(request.key, place)
        if not items:
            raise Invalid("the list is empty: nothing is submitted", field="tasks")
        tasks = [each for each in items if not isinstance(each, Refused)]
        stored = iter(await self._submit_in_pieces(request, tasks) if tasks else ())
        answers = [each if isinstance(each, Refused) else next(stored) for each in items]
        shown = [_submitted(each) for each in answers]
        if refused := refused_in(answers):
            return Answer(wire.SubmittedTasks(tasks=shown), 207, refused=refused)
        replayed = all(isinstance(each, Submitted) and each.replayed for each in answers)
        return Answer(wire.SubmittedTasks(tasks=shown), 200 if replayed else 202, (REPLAYED,) if replayed else ())

    async def _submit_in_pieces(
        self, request: Request, tasks: Sequence[wire.SubmitListed]
    ) -> list[Submitted | PerdureError]:
        """Beside others, a long list is stored piece by piece: what the store writes together keeps all waiting.

        What cannot be stored at all is told for the items of its piece, unless it is so for all of them.
        """
        turn = request.turn
        if turn is None or len(tasks) <= PIECE_TASKS or turn.alone or len(tasks) > limits.SUBMIT_MAX_TASKS:
            return await self._operations.submit(tasks, request.by)
        answers: list[Submitted | PerdureError] = []
        for start in range(0, len(tasks), PIECE_TASKS):
            if start:
                await turn.pass_on()
            piece = tasks[start : start + PIECE_TASKS]
            try:
                answers += await self._operations.submit(piece, request.by)
            except PerdureError as error:
                if not start:
                    raise
                answers += [error] * len(piece)
        return answers

    async def list_tasks(self, request: Request) -> Answer:
        """List tasks."""
        query: wire.TaskQuery = request.query
        where = filter_of(query, tuple(query.state))
        page = await self._operations.views.tasks(
            request.by.organization, where, query.limit, query.cursor or None, query.sort
        )
        return Answer(await shown_page(page))

    async def show_task(self, request: Request) -> Answer:
        """Show one task."""
        return Answer(told(await self._found(request), wire.Task))

    async def list_task_events(self, request: Request) -> Answer:
        """Show the history of a task."""
        events = await self._operations.views.events(request.by.organization, task_id(request))
        return Answer(wire.Events(events=[told(each, wire.Event) for each in events]))

    async def why_task(self, request: Request) -> Answer:
        """Tell what keeps a task from running."""
        obstacles = await self._operations.views.why(request.by.organization, task_id(request))
        return Answer(wire.Obstacles(obstacles=[told(each, wire.Obstacle) for each in obstacles]))

    async def list_attempts(self, request: Request) -> Answer:
        """Show the claims of a task."""
        attempts = await self._operations.views.attempts(request.by.organization, task_id(request))
        return Answer(wire.Attempts(attempts=[told(each, wire.Attempt) for each in attempts]))

    async def list_parts(self, request: Request) -> Answer:
        """Show the pieces of a task's result."""
        parts = await self._operations.views.parts(request.by.organization, task_id(request))
        return Answer(wire.Parts(parts=[told(each, wire.Part) for each in parts]))

    async def list_logs(self, request: Request) -> Answer:
        """Show what the handlers of a task logged."""
        query: wire.LogQuery = request.query
        page = await self._operations.views.logs(
            request.by.organization, task_id(request), query.limit, query.cursor or None
        )
        lines = [told(each, wire.LogLine) for each in page.lines]
        return Answer(wire.Logs(logs=lines, cursor=page.cursor, more=page.more))

    async def cancel_task(self, request: Request) -> Answer:
        """Cancel one task."""
        wanted = task_id(request)
        body: wire.CancelTask = request.body
        [answer] = await self._operations.cancel([wanted], request.by, text=body.reason, note=body.note)
        view = await self._found(request)
        record = None if view.cancel is None else told(view.cancel, wire.CancelRecord)
        if answer.answer == "ended":
            raise AlreadyEnded(
                f"task {wanted} has ended: {view.state} ({view.reason})",
                task_id=wanted,
                state=view.state,
                reason=view.reason,
            )
        shown = wire.CancelledTask(id=wanted, state=view.state, reason=view.reason, cancel=record)
        return Answer(shown, 202 if answer.state == TaskState.CANCELLING else 200)

    async def cancel_tasks(self, request: Request) -> Answer:
        """Cancel many tasks."""
        body: wire.CancelTasks = request.body
        answers = await self._operations.cancel(body.ids, request.by, text=body.reason, note=body.note)
        return Answer(wire.CancelledTasks(tasks=[_cancelled(*each) for each in zip(body.ids, answers, strict=True)]))

    async def wait_for_tasks(self, request: Request) -> Answer:
        """Wait until tasks have ended, and tell of those that have."""
        body: wire.WaitTasks = request.body
        organization = request.by.organization
        try:
            ended = await self._operations.wait_ended(organization, body.ids, body.wait, body.any)
        except WaitTimedOut:
            ended = await self._operations.views.ended(organization, ids.parse_all(body.ids))
        return Answer(wire.EndedTasks(tasks=[ended_task(each) for each in ended]))

    async def _found(self, request: Request) -> TaskView:
        wanted = task_id(request)
        view = await self._operations.views.task(request.by.organization, wanted)
        if view is None:
            raise NotFound(f"there is no task {wanted}", what="task", id=wanted)
        return view


def task_id(request: Request) -> str:
    """The id in the path. Raises `Malformed`."""
    return ids.parse(request.path["task_id"])


def chosen_key(header: str, body: str | None) -> str:
    """The key of a request that may say it twice. Raises `Conflict` when it says two."""
    if body is not None and body != header:
        raise Conflict("the header Idempotency-Key and the body say different keys", field="idempotency_key")
    return header


def key_in_list(header: str, place: int) -> str:
    """The key of an item that has none of its own, in a list that was sent with a key."""
    key = f"{header}#{place}"
    if len(key.encode()) <= limits.IDEMPOTENCY_KEY_MAX_BYTES:
        return key
    return f"{blake2b(header.encode(), digest_size=20).hexdigest()}#{place}"


def filter_of(
    query: wire.TaskQuery | wire.DeadLetterQuery, states: tuple[TaskState, ...], discarded: bool | None = None
) -> TaskFilter:
    """Which tasks a query asks for. Raises `Malformed`."""
    return TaskFilter(
        states=states,
        kinds=tuple(query.kind),
        queues=tuple(query.queue),
        job=None if query.job is None else ids.parse(query.job, "job", "job"),
        labels=tuple(label_pair(each, f"label[{number}]") for number, each in enumerate(query.label)),
        reasons=tuple(query.reason),
        discarded=discarded,
        submitters=tuple(query.submitter),
        ended_from_us=instant_us(query.ended_from),
        ended_before_us=instant_us(query.ended_before),
    )


async def shown_page(page: Page) -> wire.TaskPage:
    """A page of tasks without their bodies. A long one is made in pieces, between which others have the event loop."""
    tasks: list[wire.Task] = []
    for start in range(0, len(page.rows), PIECE_ROWS):
        if start:
            await asyncio.sleep(0)
        tasks += [told(row, wire.Task, bodies=False) for row in page.rows[start : start + PIECE_ROWS]]
    return wire.TaskPage(tasks=tasks, cursor=page.cursor)


def refused_in(answers: Iterable[object]) -> list[Exception]:
    """For what items were refused."""
    return [each for each in answers if isinstance(each, PerdureError)]


def refusal(error: PerdureError) -> wire.SubmitAnswered:
    """A refusal as an item of a list."""
    return wire.SubmitAnswered(problem=members_of(error))


def _submitted(answer: Submitted | PerdureError) -> wire.SubmitAnswered:
    if isinstance(answer, PerdureError):
        return refusal(answer)
    return wire.SubmitAnswered(id=answer.id, state=answer.state, replayed=answer.replayed, outcome=answer.told())


def _cancelled(wanted: str, answer: Cancelled) -> wire.CancelAnswered:
    return wire.CancelAnswered(id=wanted, answer=answer.answer.value, state=answer.state, reason=answer.reason)
