"""What submitting a job gives back: a hold on the whole DAG and on each of its tasks."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from perdure.app.handle import Access, Handle, value_of
from perdure.app.node import Node
from perdure.app.task import R
from perdure.domain import ids
from perdure.domain.states import BAD_ENDS, GOOD_ENDS, JobState, TaskState
from perdure.domain.why import Obstacle
from perdure.engine.job_timeline import JobTimeline, read_timeline
from perdure.engine.wait_job import wait_jobs
from perdure.errors import Invalid, JobFailed, NotFound
from perdure.store.job_ledger import JobRetried
from perdure.store.views import EventView, JobProgress, JobTaskView, JobView, TaskFilter
from perdure.worker.handler import Handler

READ_AT_ONCE = 1_000
"""How many results are read in one go."""
NAMES_SHOWN = 8


class JobHandle:
    """One job. `task_ids` maps the names of its tasks to ids; `handle[name]` is a hold on one of them.

    Tasks that running ones add are known here once `tasks()` or `result()` has seen them.
    """

    def __init__(
        self,
        access: Access,
        job_id: str,
        task_ids: Mapping[str, str],
        handlers: Mapping[str, Handler | None] | None = None,
        *,
        replayed: bool = False,
    ) -> None:
        self.id = ids.parse(job_id, "job")
        self.task_ids = dict(task_ids)
        self.replayed = replayed
        self._access = access
        self._handlers = dict(handlers or {})

    def __repr__(self) -> str:
        return f"<perdure handle of job {self.id}>"

    @overload
    def __getitem__(self, name: Node[R]) -> Handle[R]: ...
    @overload
    def __getitem__(self, name: str) -> Handle[Any]: ...
    def __getitem__(self, name: Node[Any] | str) -> Handle[Any]:
        """The hold on one of its tasks, by name or by what `job.add` gave. Raises `Invalid` when the job has none."""
        name = name if isinstance(name, str) else name.name
        if name not in self.task_ids:
            raise Invalid(f"the job has no task named {name!r}", field="name", names=[name])
        return Handle(self._access, self.task_ids[name], self._handlers.get(name))

    async def status(self) -> JobView:
        """The job as it stands. Raises `NotFound`."""
        operations = await self._access.operations()
        view = await operations.views.job(self._access.principal.organization, self.id)
        if view is None:
            raise self._not_found()
        return view

    def _not_found(self) -> NotFound:
        return NotFound(f"there is no job {self.id}; its retention may be over", what="job", id=self.id)

    async def tasks(self) -> list[JobTaskView]:
        """Its tasks as they stand, in the order of submission. Raises `NotFound`."""
        operations = await self._access.operations()
        tasks = await operations.views.job_tasks(self._access.principal.organization, self.id)
        self.task_ids.update({task.name: task.id for task in tasks})
        return tasks

    async def events(self) -> list[EventView]:
        """The job's own history. Raises `NotFound`."""
        operations = await self._access.operations()
        return await operations.views.job_events(self._access.principal.organization, self.id)

    async def cancel(self, text: str | None = None) -> bool:
        """Ask that the job shall stop: its open tasks are cancelled. False when it had ended. Raises `NotFound`."""
        operations = await self._access.operations()
        return await operations.cancel_job(self.id, self._access.principal, text)

    async def retry(self) -> JobRetried:
        """Run again what failed of the job, under the same ids, with all that was cancelled for it.

        Raises `Conflict` where nothing of it failed or it is being cancelled, and `NotFound`.
        """
        operations = await self._access.operations()
        return await operations.retry_job(self.id, self._access.principal)

    async def progress(self) -> JobProgress:
        """How far the job is: its tasks by state, and the items that handlers told of. Raises `NotFound`."""
        operations = await self._access.operations()
        progress = await operations.views.job_progress(self._access.principal.organization, self.id)
        if progress is None:
            raise self._not_found()
        return progress

    async def timeline(self) -> JobTimeline:
        """When each task waited and ran, and the critical path: so far, while the job runs. Raises `NotFound`."""
        operations = await self._access.operations()
        return await read_timeline(operations.views, self.id, self._access.principal)

    async def wait(self, timeout: float | None = None) -> JobState:
        """Wait until every task of the job has ended, and tell how.

        Raises `WaitTimedOut` after `timeout` seconds, and `NotFound`.
        """
        operations = await self._access.operations()
        waiting = wait_jobs(operations, self._access.principal.organization, [self.id], timeout)
        [view] = await self._access.patience.bear(waiting, self._why)
        return view.state

    async def _why(self) -> tuple[str, Sequence[Obstacle]]:
        """What keeps one of its tasks that could run."""
        operations = await self._access.operations()
        organization = self._access.principal.organization
        page = await operations.views.tasks(organization, TaskFilter(job=self.id, states=(TaskState.QUEUED,)), 1)
        for task in page.rows:
            return task.id, await operations.views.why(organization, task.id)
        return "", ()

    async def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the job and return what its tasks returned, by name; tasks without a result are left out.

        Raises `JobFailed` when the job ended failed or cancelled, `WaitTimedOut` after `timeout` seconds.
        """
        state = await self.wait(timeout)
        tasks = await self.tasks()
        if state in (JobState.FAILED, JobState.CANCELLED):
            raise self._failure(state, tasks)
        operations = await self._access.operations()
        names = list(self.task_ids)
        results: dict[str, Any] = {}
        for start in range(0, len(names), READ_AT_ONCE):
            some = {self.task_ids[name]: name for name in names[start : start + READ_AT_ONCE]}
            for end in await operations.views.ended(self._access.principal.organization, list(some)):
                if end.state in GOOD_ENDS and end.result is not None:
                    name = some[end.id]
                    results[name] = value_of(end, self._handlers.get(name))
        return results

    def _failure(self, state: JobState, tasks: Sequence[JobTaskView]) -> JobFailed:
        failed = [f"{task.name} ({task.state}, {task.reason})" for task in tasks if task.state in BAD_ENDS]
        shown = ", ".join(failed[:NAMES_SHOWN]) + (
            f" and {len(failed) - NAMES_SHOWN} more" if failed[NAMES_SHOWN:] else ""
        )
        cause = f": {shown}" if failed else ""
        return JobFailed(
            f"job {self.id} ended {state}{cause}",
            job_id=self.id,
            state=state,
            names=[task.name for task in tasks if task.state in BAD_ENDS],
        )
