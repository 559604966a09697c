"""The app without `await`: the same operations, run on the portal's thread, raising the same errors."""

import asyncio
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, Unpack, overload

from perdure.app.flow import SyncFlow
from perdure.app.given import check_all_given, check_given
from perdure.app.handle import Handle, wait_all, wait_any
from perdure.app.job import JobBuilder
from perdure.app.job_handle import JobHandle
from perdure.app.matching import Which, WhichDeadLetters
from perdure.app.node import Node
from perdure.app.portal import Portal, refuse_inside_loop
from perdure.app.schedules import SyncSchedules
from perdure.app.submitting import Many, all_or_raise, submit_call, submit_calls, submit_calls_within
from perdure.app.task import Call, R, R_co, Task
from perdure.domain.states import JobState, TaskState
from perdure.domain.task import FailurePolicy
from perdure.domain.why import Obstacle
from perdure.engine.job_timeline import JobTimeline
from perdure.errors import PerdureError
from perdure.store.job_ledger import JobRetried
from perdure.store.ledger import Cancelled
from perdure.store.views import EventView, JobProgress, JobTaskView, JobView, LogView, TaskView

if TYPE_CHECKING:
    from perdure.app.app import App
    from perdure.app.call import Target


class SyncHandle(Generic[R_co]):
    """One task, for code without `await`; see `Handle`."""

    def __init__(self, portal: Portal, handle: Handle[R_co]) -> None:
        self._portal = portal
        self.handle = handle
        self.id = handle.id
        self.replayed = handle.replayed
        self.outcome = handle.outcome

    def __repr__(self) -> str:
        return f"<perdure handle of task {self.id}>"

    def wait(self, timeout: float | None = None) -> TaskState:
        """See `Handle.wait`."""
        return self._portal.call(self.handle.wait, timeout)

    def result(self, timeout: float | None = None) -> R_co:
        """See `Handle.result`."""
        return self._portal.call(self.handle.result, timeout)

    def status(self) -> TaskView:
        """See `Handle.status`."""
        return self._portal.call(self.handle.status)

    def cancel(self, text: str | None = None, *, note: str | None = None) -> Cancelled:
        """See `Handle.cancel`."""
        return self._portal.call(self.handle.cancel, text, note=note)

    def why(self) -> list[Obstacle]:
        """See `Handle.why`."""
        return self._portal.call(self.handle.why)

    def events(self) -> list[EventView]:
        """See `Handle.events`."""
        return self._portal.call(self.handle.events)

    def logs(self) -> list[LogView]:
        """See `Handle.logs`."""
        return self._portal.call(self.handle.logs)


class SyncJobHandle:
    """One job, for code without `await`; see `JobHandle`."""

    def __init__(self, portal: Portal, handle: JobHandle) -> None:
        self._portal = portal
        self.handle = handle
        self.id = handle.id
        self.task_ids = handle.task_ids
        self.replayed = handle.replayed

    def __repr__(self) -> str:
        return f"<perdure handle of job {self.id}>"

    @overload
    def __getitem__(self, name: Node[R]) -> SyncHandle[R]: ...
    @overload
    def __getitem__(self, name: str) -> SyncHandle[Any]: ...
    def __getitem__(self, name: Node[Any] | str) -> SyncHandle[Any]:
        return SyncHandle(self._portal, self.handle[name])

    def wait(self, timeout: float | None = None) -> JobState:
        """See `JobHandle.wait`."""
        return self._portal.call(self.handle.wait, timeout)

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """See `JobHandle.result`."""
        return self._portal.call(self.handle.result, timeout)

    def status(self) -> JobView:
        """See `JobHandle.status`."""
        return self._portal.call(self.handle.status)

    def tasks(self) -> list[JobTaskView]:
        """See `JobHandle.tasks`."""
        return self._portal.call(self.handle.tasks)

    def retry(self) -> JobRetried:
        """See `JobHandle.retry`."""
        return self._portal.call(self.handle.retry)

    def progress(self) -> JobProgress:
        """See `JobHandle.progress`."""
        return self._portal.call(self.handle.progress)

    def timeline(self) -> JobTimeline:
        """See `JobHandle.timeline`."""
        return self._portal.call(self.handle.timeline)

    def cancel(self, text: str | None = None) -> bool:
        """See `JobHandle.cancel`."""
        return self._portal.call(self.handle.cancel, text)


class SyncJobBuilder:
    """A DAG in the making, for code without `await`; see `JobBuilder`."""

    def __init__(self, portal: Portal, builder: JobBuilder) -> None:
        self._portal = portal
        self._builder = builder
        self.add = builder.add

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._builder.__exit__(kind, error, None)

    def submit(self, idempotency_key: str | None = None) -> SyncJobHandle:
        """See `JobBuilder.submit`."""
        return SyncJobHandle(self._portal, self._portal.call(self._builder.submit, idempotency_key))


HANDLES = "handles of an app.sync, which its submit returns and its handle(id) makes"


class SyncApp:
    """The app's operations for code without `await`, from any thread and in any process.

    They run on one background thread with an event loop, started on first use; a forked child starts its own. Inside
    a running event loop they raise `Misuse`: there, await the methods of the app itself.
    """

    def __init__(self, app: "App") -> None:
        from perdure.app.app import App  # An app makes one of these.

        check_given(app, App, "app", "a perdure.App; an app has one already, as app.sync")
        self._app = app
        self.portal = Portal(app.close)
        self.schedules = SyncSchedules(app)
        """See `App.schedules`."""
        self.flow = SyncFlow(app)
        """See `App.flow`."""

    def __enter__(self) -> Self:
        self.portal.call(self._app.system)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store and end the background thread; a later use starts again."""
        self.portal.close()

    @overload
    def submit(
        self, task: Task[..., R] | Call[R], /, *args: Any, connection: Any = None, **fields: Any
    ) -> SyncHandle[R]: ...
    @overload
    def submit(self, task: str, /, *args: Any, connection: Any = None, **fields: Any) -> SyncHandle[Any]: ...
    def submit(self, task: "Target", /, *args: Any, connection: Any = None, **fields: Any) -> SyncHandle[Any]:
        """See `App.submit`, which has the same options. With `connection`, the write is made on the calling thread."""
        call = self._app.call(task, *args, **fields)
        if connection is None:
            return SyncHandle(self.portal, self.portal.call(submit_call, self._app, None, call))
        [handle] = self.submit_many([call], connection=connection)
        return handle

    @overload
    def submit_many(
        self, calls: Sequence[Call[R]], *, connection: Any = None, return_errors: Literal[False] = False
    ) -> list[SyncHandle[R]]: ...
    @overload
    def submit_many(
        self, calls: Many, *, connection: Any = None, return_errors: Literal[True]
    ) -> list[SyncHandle[Any] | PerdureError]: ...
    def submit_many(self, calls: Many, *, connection: Any = None, return_errors: bool = False) -> Any:
        """See `App.submit_many`."""
        if connection is None:
            answers = self.portal.call(submit_calls, self._app, calls)
        else:
            answers = submit_calls_within(self._app, self.portal.call(self._app.system), calls, connection)
        if not return_errors:
            return [SyncHandle(self.portal, handle) for handle in all_or_raise(answers)]
        return [SyncHandle(self.portal, each) if isinstance(each, Handle) else each for each in answers]

    def job(self, name: str, *, on_failure: FailurePolicy = "fail", metadata: Any = None) -> SyncJobBuilder:
        """See `App.job`."""
        return SyncJobBuilder(self.portal, self._app.job(name, on_failure=on_failure, metadata=metadata))

    def cancel_all(self, *, text: str | None = None, dry_run: bool = False, **which: Unpack[Which]) -> dict[str, int]:
        """See `App.cancel_all`."""
        return self.portal.call(self._app.cancel_all, text=text, dry_run=dry_run, **which)

    def requeue_all(
        self, *, rate: int | None = None, dry_run: bool = False, **which: Unpack[WhichDeadLetters]
    ) -> dict[str, int]:
        """See `App.requeue_all`."""
        return self.portal.call(self._app.requeue_all, rate=rate, dry_run=dry_run, **which)

    def discard_all(self, *, dry_run: bool = False, **which: Unpack[WhichDeadLetters]) -> dict[str, int]:
        """See `App.discard_all`."""
        return self.portal.call(self._app.discard_all, dry_run=dry_run, **which)

    def purge_all(self, *, dry_run: bool = False, **which: Unpack[WhichDeadLetters]) -> dict[str, int]:
        """See `App.purge_all`."""
        return self.portal.call(self._app.purge_all, dry_run=dry_run, **which)

    def handle(self, task_id: str, task: Task[..., R] | None = None) -> SyncHandle[R]:
        """See `App.handle`."""
        return SyncHandle(self.portal, self._app.handle(task_id, task))

    def job_handle(self, job_id: str) -> SyncJobHandle:
        """See `App.job_handle`."""
        return SyncJobHandle(self.portal, self.portal.call(self._app.job_handle, job_id))

    def wait_all(self, handles: Sequence[SyncHandle[Any]], timeout: float | None = None) -> None:
        """See `perdure.wait_all`."""
        check_all_given(handles, SyncHandle, "handles", HANDLES)
        self.portal.call(wait_all, [each.handle for each in handles], timeout)

    def wait_any(self, handles: Sequence[SyncHandle[R]], timeout: float | None = None) -> list[SyncHandle[R]]:
        """See `perdure.wait_any`."""
        check_all_given(handles, SyncHandle, "handles", HANDLES)
        ended = {handle.id for handle in self.portal.call(wait_any, [each.handle for each in handles], timeout)}
        return [each for each in handles if each.id in ended]

    def as_completed(self, handles: Sequence[SyncHandle[R]], timeout: float | None = None) -> Iterator[SyncHandle[R]]:
        """See `perdure.as_completed`."""
        left = list(handles)
        while left:
            for handle in self.wait_any(left, timeout):
                left.remove(handle)
                yield handle

    def run(self, **options: Any) -> None:
        """Work until SIGTERM or SIGINT, in the calling thread, which must be the main one. See `App.run`."""
        refuse_inside_loop()
        asyncio.run(self._app.run(**options))
