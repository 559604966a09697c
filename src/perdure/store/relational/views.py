"""Reading, on connections that never write. Each question is one transaction, so that its answer is of one instant."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from perdure.domain.states import JobState
from perdure.domain.why import Obstacle
from perdure.store.flow_views import GateFilter, PauseView
from perdure.store.relational import (
    breakers,
    flow_views,
    history,
    job_history,
    job_views,
    listing,
    logs,
    queue_views,
    standings,
    task_views,
)
from perdure.store.relational.transaction import Transaction
from perdure.store.sort import Sort
from perdure.store.views import (
    AttemptView,
    BreakerView,
    Ended,
    EventView,
    JobProgress,
    JobTaskView,
    JobView,
    LogPage,
    Overview,
    Page,
    PartView,
    QueueView,
    TaskFilter,
    TaskView,
    WorkerView,
)
from perdure.store.worker_times import USUAL, WorkerTimes

T = TypeVar("T")


class Readers(Protocol):
    """Connections that only read."""

    def read(self, question: Callable[[Transaction], T]) -> Awaitable[T]:
        """The answer to `question`, asked in a read transaction of its own, away from the event loop."""


class RelationalViews:
    """Meets `perdure.store.views.Views`."""

    def __init__(self, readers: Readers, worker_times: WorkerTimes = USUAL) -> None:
        self._readers = readers
        self._worker_times = worker_times

    async def task(self, organization: str, task_id: str) -> TaskView | None:
        """One task, payload and result included."""
        return await self._readers.read(partial(task_views.task, organization=organization, task_id=task_id))

    async def tasks(
        self, organization: str, where: TaskFilter, limit: int, cursor: str | None = None, sort: Sort = Sort.NEWEST
    ) -> Page:
        """A page of tasks. Raises `Malformed` for a bad cursor and `Invalid` for a limit below 1."""
        page = listing.TaskListing(organization, where, limit, cursor, sort)
        return await self._readers.read(page.read)

    async def why(self, organization: str, task_id: str) -> list[Obstacle]:
        """What keeps a task from running. Raises `NotFound`."""
        worker_times = self._worker_times
        asked = partial(standings.why_not, organization=organization, task_id=task_id, worker_times=worker_times)
        return await self._readers.read(asked)

    async def attempts(self, organization: str, task_id: str) -> list[AttemptView]:
        """All claims of a task, by fence. Raises `NotFound`."""
        return await self._readers.read(partial(task_views.attempts, organization=organization, task_id=task_id))

    async def events(self, organization: str, task_id: str) -> list[EventView]:
        """A task's history, in order. Raises `NotFound`."""
        return await self._readers.read(partial(history.of_task, organization=organization, task_id=task_id))

    async def parts(self, organization: str, task_id: str) -> list[PartView]:
        """A task's result parts by attempt and sequence. Raises `NotFound`."""
        return await self._readers.read(partial(task_views.parts, organization=organization, task_id=task_id))

    async def logs(self, organization: str, task_id: str, limit: int, cursor: str | None = None) -> LogPage:
        """A page of what handlers of a task logged. Raises `NotFound`, `Malformed` and `Invalid`."""
        asked = partial(logs.of_task, organization=organization, task_id=task_id, limit=limit, cursor=cursor)
        return await self._readers.read(asked)

    async def ended(self, organization: str, task_ids: Sequence[str]) -> list[Ended]:
        """Those of `task_ids` that have ended."""
        return await self._readers.read(partial(task_views.ended, organization=organization, task_ids=task_ids))

    async def job(self, organization: str, job_id: str) -> JobView | None:
        """One job; its counts tell the unfinished states too."""
        return await self._readers.read(partial(job_views.job, organization=organization, job_id=job_id))

    async def jobs(
        self,
        organization: str,
        states: Sequence[JobState],
        limit: int,
        cursor: str | None = None,
        sort: Sort = Sort.NEWEST,
    ) -> Page:
        """A page of jobs. Raises `Malformed` for a bad cursor and `Invalid` for a limit below 1."""
        page = listing.JobListing(organization, states, limit, cursor, sort)
        return await self._readers.read(page.read)

    async def job_progress(self, organization: str, job_id: str) -> JobProgress | None:
        """How far one job is."""
        return await self._readers.read(partial(job_views.job_progress, organization=organization, job_id=job_id))

    async def job_tasks(self, organization: str, job_id: str) -> list[JobTaskView]:
        """All tasks of a job in the order of submission. Raises `NotFound`."""
        return await self._readers.read(partial(job_views.job_tasks, organization=organization, job_id=job_id))

    async def job_events(self, organization: str, job_id: str) -> list[EventView]:
        """A job's own history. Raises `NotFound`."""
        return await self._readers.read(partial(job_history.of_job, organization=organization, job_id=job_id))

    async def queues(self, organization: str) -> list[QueueView]:
        """Queues that hold something or have a policy, by name."""
        active_us = self._worker_times.active_us
        return await self._readers.read(partial(queue_views.queues, organization=organization, active_us=active_us))

    async def breakers(self, organization: str) -> list[BreakerView]:
        """The breakers of kinds that have one, by kind."""
        return await self._readers.read(partial(breakers.breakers, organization=organization))

    async def gates(
        self, organization: str, kind: str, where: GateFilter, limit: int, cursor: str | None = None
    ) -> Page:
        """A page of the gates of a kind. Raises `Malformed` for a bad cursor and `Invalid` for a limit below 1."""
        page = flow_views.GateListing(organization, kind, where, limit, cursor)
        return await self._readers.read(page.read)

    async def pauses(self, organization: str) -> list[PauseView]:
        """What is stopped, what has been for longest first."""
        return await self._readers.read(partial(flow_views.pauses, organization=organization))

    async def workers(self, organization: str, active_us: int | None) -> list[WorkerView]:
        """Workers that serve the organization and were seen within `active_us`, last seen first."""
        return await self._readers.read(partial(queue_views.workers, organization=organization, active_us=active_us))

    async def overview(self, organization: str) -> Overview:
        """Counts, oldest and totals."""
        active_us = self._worker_times.active_us
        return await self._readers.read(partial(queue_views.overview, organization=organization, active_us=active_us))
