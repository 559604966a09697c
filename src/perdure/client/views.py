"""Reading over HTTP. The gateway decides by who asks which organization is meant; the argument is not sent."""

from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from perdure import wire
from perdure.client.transport import Request, Transport
from perdure.client.watching import Watch
from perdure.domain import ids, limits
from perdure.domain.states import JobState
from perdure.domain.why import Obstacle
from perdure.errors import NotFound
from perdure.store.flow_views import GateFilter, PauseView
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
    LogView,
    Overview,
    Page,
    PartView,
    QueueView,
    TaskFilter,
    TaskView,
    WorkerView,
)
from perdure.wire import shapes
from perdure.wire.telling import read, read_counts, read_gate

V = TypeVar("V")


class RemoteViews:
    """What can be read, over HTTP. Meets `Views`."""

    def __init__(self, transport: Transport, watch: Watch) -> None:
        self._transport = transport
        self._watch = watch

    async def task(self, organization: str, task_id: str) -> TaskView | None:
        """One task, payload and result included."""
        try:
            return read(await self._get(f"/v1/tasks/{_id(task_id)}", wire.Task), TaskView)
        except NotFound:
            return None

    async def tasks(
        self, organization: str, where: TaskFilter, limit: int, cursor: str | None = None, sort: Sort = Sort.NEWEST
    ) -> Page:
        """`TaskView`s."""
        query: dict[str, Any] = {
            "sort": sort,
            "kind": list(where.kinds),
            "queue": list(where.queues),
            "label": [f"{name}={value}" for name, value in where.labels],
            "reason": [str(each) for each in where.reasons],
            "limit": limit,
        }
        if where.job is not None:
            query["job"] = where.job
        if where.submitters:
            query["submitter"] = list(where.submitters)
        for name, us in (("ended_from", where.ended_from_us), ("ended_before", where.ended_before_us)):
            if us is not None:
                query[name] = str(shapes.instant(us)).replace(" ", "T")
        path = "/v1/tasks"
        if where.discarded is not None:
            path = "/v1/dead-letters"
            query["discarded"] = "true" if where.discarded else "false"
        else:
            query["state"] = [str(each) for each in where.states]
        page = await self._get(path, wire.TaskPage, _paged(query, cursor))
        return Page([read(each, TaskView) for each in page.tasks], page.cursor)

    async def attempts(self, organization: str, task_id: str) -> list[AttemptView]:
        """All claims of a task, by fence."""
        answer = await self._get(f"/v1/tasks/{_id(task_id)}/attempts", wire.Attempts)
        return [read(each, AttemptView) for each in answer.attempts]

    async def why(self, organization: str, task_id: str) -> list[Obstacle]:
        """What keeps a task from running."""
        answer = await self._get(f"/v1/tasks/{_id(task_id)}/why", wire.Obstacles)
        return [read(each, Obstacle) for each in answer.obstacles]

    async def events(self, organization: str, task_id: str) -> list[EventView]:
        """A task's history, in order."""
        answer = await self._get(f"/v1/tasks/{_id(task_id)}/events", wire.Events)
        return [read(each, EventView) for each in answer.events]

    async def parts(self, organization: str, task_id: str) -> list[PartView]:
        """A task's result parts by attempt and sequence."""
        answer = await self._get(f"/v1/tasks/{_id(task_id)}/parts", wire.Parts)
        return [read(each, PartView) for each in answer.parts]

    async def logs(self, organization: str, task_id: str, limit: int, cursor: str | None = None) -> LogPage:
        """What handlers of a task logged, by attempt and in its order."""
        asked = _paged({"limit": limit}, cursor)
        answer = await self._get(f"/v1/tasks/{_id(task_id)}/logs", wire.Logs, asked)
        return LogPage([read(each, LogView) for each in answer.logs], answer.cursor, answer.more)

    async def ended(self, organization: str, task_ids: Sequence[str]) -> list[Ended]:
        """Those of `task_ids` that have ended."""
        return await self._watch.ended(task_ids)

    async def job(self, organization: str, job_id: str) -> JobView | None:
        """One job."""
        try:
            return read(await self._get(f"/v1/jobs/{_id(job_id, 'job')}", wire.Job), JobView)
        except NotFound:
            return None

    async def jobs(
        self,
        organization: str,
        states: Sequence[JobState],
        limit: int,
        cursor: str | None = None,
        sort: Sort = Sort.NEWEST,
    ) -> Page:
        """`JobView`s."""
        query = _paged({"state": [str(each) for each in states], "sort": sort, "limit": limit}, cursor)
        page = await self._get("/v1/jobs", wire.JobPage, query)
        return Page([read(each, JobView) for each in page.jobs], page.cursor)

    async def job_progress(self, organization: str, job_id: str) -> JobProgress | None:
        """How far one job is."""
        try:
            return read(await self._get(f"/v1/jobs/{_id(job_id, 'job')}/progress", wire.JobProgress), JobProgress)
        except NotFound:
            return None

    async def job_tasks(self, organization: str, job_id: str) -> list[JobTaskView]:
        """All tasks of a job in the order of submission."""
        answer = await self._get(f"/v1/jobs/{_id(job_id, 'job')}/tasks", wire.JobTasks)
        return [read(each, JobTaskView) for each in answer.tasks]

    async def job_events(self, organization: str, job_id: str) -> list[EventView]:
        """A job's own history."""
        answer = await self._get(f"/v1/jobs/{_id(job_id, 'job')}/events", wire.Events)
        return [read(each, EventView) for each in answer.events]

    async def queues(self, organization: str) -> list[QueueView]:
        """Queues that hold something or have a policy, by name."""
        answer = await self._get("/v1/queues", wire.Queues)
        return [read(each, QueueView) for each in answer.queues]

    async def breakers(self, organization: str) -> list[BreakerView]:
        """The breakers of kinds that have one, by kind."""
        answer = await self._get("/v1/breakers", wire.Breakers)
        return [read(each, BreakerView) for each in answer.breakers]

    async def gates(
        self, organization: str, kind: str, where: GateFilter, limit: int, cursor: str | None = None
    ) -> Page:
        """`GateView`s of the gates of a kind."""
        query = {"key": list(where.keys), "waiting": "true" if where.waiting else "false", "limit": limit}
        page = await self._get(f"/v1/kinds/{quoted(kind)}/gates", wire.Gates, _paged(query, cursor))
        return Page([read_gate(each) for each in page.gates], page.cursor)

    async def pauses(self, organization: str) -> list[PauseView]:
        """What is stopped."""
        answer = await self._get("/v1/pauses", wire.Pauses)
        return [read(each, PauseView) for each in answer.pauses]

    async def workers(self, organization: str, active_us: int | None) -> list[WorkerView]:
        """Workers seen within `active_us`; all that are kept when `None`."""
        query = {"all": "true"} if active_us is None else {"active": f"{active_us / limits.SECOND_US:f}"}
        answer = await self._get("/v1/workers", wire.Workers, query)
        return [read(each, WorkerView) for each in answer.workers]

    async def overview(self, organization: str) -> Overview:
        """Counts, oldest and totals."""
        return read_counts(await self._get("/v1/meta/tasks", wire.Counts))

    async def _get(self, path: str, answer: type[V], query: dict[str, Any] | None = None) -> V:
        shown: V = await self._transport.ask(Request("GET", path, query=query), answer)
        return shown


def _id(text: str, what: str = "task") -> str:
    return ids.parse(text, what)


def _paged(query: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    return query if cursor is None else {**query, "cursor": cursor}


def quoted(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")
