"""What a submit gives back: a hold on one task, to wait for it, look at it and cancel it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from perdure.app.given import check_all_given
from perdure.app.patience import Patience
from perdure.domain.limits import LIST_MAX_ROWS
from perdure.domain.states import GOOD_ENDS, TaskState
from perdure.domain.unique import SubmitOutcome
from perdure.domain.why import Obstacle, ObstacleSort
from perdure.engine.engine import Operations
from perdure.engine.quantities import check_timeout
from perdure.engine.requests import Principal
from perdure.errors import Misuse, NotFound, TaskFailed
from perdure.store.ledger import Cancelled
from perdure.store.views import AttemptView, Ended, EventView, LogView, PartView, TaskView
from perdure.wiring import System
from perdure.worker.handler import Handler
from perdure.worker.results import decode_result

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

LOOKED_AT = 10
"""So many tasks are asked, in vain, what keeps one that is waited for."""
WATCHED_TASKS = 200
"""How many tasks are watched at once by a wait for all of many."""


class Access(Protocol):
    """What a handle needs of its app."""

    principal: Principal
    patience: Patience

    async def operations(self) -> Operations:
        """The operations, opened if need be."""

    async def system(self) -> System:
        """Store and engine, opened if need be."""


class Handle(msgspec.Struct, Generic[R_co], eq=False, weakref=True):
    """One task. `R_co` is what its handler returns.

    `replayed` tells that the task existed before under the same idempotency key. `state` is the task's state as it
    was answered by the submit, `None` where it was replayed and has been removed since (keys are kept for 7 days); ask
    `status()` for the present one. `outcome` is what the submit of a unique task has done: `created` a task, put it in
    the place of another (`replaced`), or found another that was `existing`, or is `debounced` and has the payload now.
    """

    # Structs are made several times as quickly as other objects: a submit of many gives a handle for each.
    _access: Access
    id: str
    _handler: Handler | None = None
    replayed: bool = False
    state: TaskState | None = None
    outcome: SubmitOutcome = SubmitOutcome.CREATED
    _ended: Ended | None = None

    def __repr__(self) -> str:
        return f"<perdure handle of task {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and (other.id, other._access) == (self.id, self._access)

    def __hash__(self) -> int:
        return hash(self.id)

    async def wait(self, timeout: float | None = None) -> TaskState:
        """Wait until the task has ended, and tell how. Raises `WaitTimedOut` after `timeout` seconds."""
        await wait_all([self], timeout)
        return self._known_end().state

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the task and return what its handler returned, as the type that it declares.

        Raises `TaskFailed` when the task ended without a result, `WaitTimedOut` after `timeout` seconds (the task goes
        on then), and `NotFound` when the result is not kept any more.
        """
        await wait_all([self], timeout)
        result: R_co = value_of(self._known_end(), self._handler)
        return result

    async def status(self) -> TaskView:
        """The task as it stands, with payload and result. Raises `NotFound`."""
        operations = await self._access.operations()
        view = await operations.views.task(self._access.principal.organization, self.id)
        if view is None:
            raise NotFound(f"there is no task {self.id}; its retention may be over", what="task", id=self.id)
        return view

    async def cancel(self, text: str | None = None, *, note: str | None = None) -> Cancelled:
        """Ask that the task shall not (go on to) run. `text` is told to everybody who sees the task, `note` is not.

        A task that has ended is left as it is; the answer says so.
        """
        operations = await self._access.operations()
        [answer] = await operations.cancel([self.id], self._access.principal, text=text, note=note)
        if answer.state is None:
            raise NotFound(f"there is no task {self.id}; its retention may be over", what="task", id=self.id)
        return answer

    async def why(self) -> list[Obstacle]:
        """What keeps the task from running: each thing with what holds it and what would free it. Raises `NotFound`.

        Empty: the next worker that asks for work and fits gets it.
        """
        operations = await self._access.operations()
        return await operations.views.why(self._access.principal.organization, self.id)

    async def events(self) -> list[EventView]:
        """The task's history, in order. Raises `NotFound`."""
        operations = await self._access.operations()
        return await operations.views.events(self._access.principal.organization, self.id)

    async def attempts(self) -> list[AttemptView]:
        """The claims of the task, in order. Raises `NotFound`."""
        operations = await self._access.operations()
        return await operations.views.attempts(self._access.principal.organization, self.id)

    async def parts(self) -> list[PartView]:
        """The pieces of its result that it has handed in so far. Raises `NotFound`."""
        operations = await self._access.operations()
        return await operations.views.parts(self._access.principal.organization, self.id)

    async def logs(self) -> list[LogView]:
        """What its handlers logged so far, attempt by attempt. Raises `NotFound`."""
        operations = await self._access.operations()
        lines: list[LogView] = []
        cursor: str | None = None
        while True:
            page = await operations.views.logs(self._access.principal.organization, self.id, LIST_MAX_ROWS, cursor)
            lines += page.lines
            cursor = page.cursor
            if not page.more:
                return lines

    def _known_end(self) -> Ended:
        assert self._ended is not None
        return self._ended


def value_of(ended: Ended, handler: Handler | None) -> Any:
    """The result of a task that has ended, as its handler's type where that is known. Raises `TaskFailed`."""
    if ended.state not in GOOD_ENDS:
        raise failure_of(ended)
    if ended.result is None:
        raise NotFound(
            f"task {ended.id} ended {ended.state}, and its result is not kept any more: the kind's result_retention is"
            " over",
            what="result",
            id=ended.id,
        )
    return handler.decode_result(ended.result) if handler is not None else decode_result(ended.result)


def failure_of(ended: Ended) -> TaskFailed:
    """The error that tells why there is no result."""
    cause = f": {ended.error.type}: {ended.error.message}" if ended.error is not None else ""
    return TaskFailed(
        f"task {ended.id} ended {ended.state} ({ended.reason}){cause}",
        task_id=ended.id,
        state=ended.state,
        reason=ended.reason,
        error=ended.error,
    )


HANDLES = "handles, which `await app.submit(...)` returns and app.handle(id) makes"


async def wait_all(handles: Sequence[Handle[Any]], timeout: float | None = None) -> None:
    """Wait until all of these tasks have ended, however they ended; `result()` of each then answers at once.

    Raises `WaitTimedOut` after `timeout` seconds.
    """
    await _wait(handles, timeout, any_of=False)


async def wait_any(handles: Sequence[Handle[R]], timeout: float | None = None) -> list[Handle[R]]:
    """Wait until at least one of these tasks has ended and return those that have. Raises `WaitTimedOut`."""
    await _wait(handles, timeout, any_of=True)
    return [handle for handle in handles if handle._ended is not None]


async def as_completed(handles: Sequence[Handle[R]], timeout: float | None = None) -> AsyncIterator[Handle[R]]:
    """The handles one by one as their tasks end. Raises `WaitTimedOut` when `timeout` seconds pass without an end."""
    check_all_given(handles, Handle, "handles", HANDLES)
    left = list(handles)
    while left:
        for handle in await wait_any(left, timeout):
            left.remove(handle)
            yield handle


async def _wait(handles: Sequence[Handle[Any]], timeout: float | None, any_of: bool) -> None:
    check_timeout(timeout)
    check_all_given(handles, Handle, "handles", HANDLES)
    unknown = [handle for handle in handles if handle._ended is None]
    if not unknown or (any_of and len(unknown) < len(handles)):
        return
    access = unknown[0]._access
    if any(handle._access is not access for handle in unknown):
        raise Misuse("these handles belong to different apps: wait for those of each app on their own")
    operations = await access.operations()
    clock = asyncio.get_running_loop()
    until = None if timeout is None else clock.time() + timeout
    # All have to end anyway, so some are waited for after others: each look then asks for few.
    slice_size = len(unknown) if any_of else WATCHED_TASKS
    for start in range(0, len(unknown), slice_size):
        some = unknown[start : start + slice_size]
        left = None if until is None else max(0.0, until - clock.time())
        waiting = _wait_for(some, operations, access.principal.organization, left, any_of)
        await access.patience.bear(waiting, partial(_why_one, some, operations, access.principal.organization))


async def _wait_for(
    handles: Sequence[Handle[Any]], operations: Operations, organization: str, timeout: float | None, any_of: bool
) -> None:
    ended = await operations.wait_ended(organization, [handle.id for handle in handles], timeout, any_of)
    ends = {end.id: end for end in ended}
    for handle in handles:
        handle._ended = ends.get(handle.id)


async def _why_one(
    handles: Sequence[Handle[Any]], operations: Operations, organization: str
) -> tuple[str, Sequence[Obstacle]]:
    """What keeps the first of these that has not ended; a few are looked at."""
    for handle in handles[:LOOKED_AT]:
        obstacles = await operations.views.why(organization, handle.id)
        if not any(each.sort is ObstacleSort.ENDED for each in obstacles):
            return handle.id, obstacles
    return "", ()
