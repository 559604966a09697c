"""Handlers about jobs."""

from typing import cast

from perdure import wire
from perdure.domain import ids
from perdure.domain.states import JobState
from perdure.engine.engine import Operations
from perdure.engine.job_timeline import read_timeline
from perdure.engine.requests import JobRequest, JobTaskRequest
from perdure.errors import AlreadyEnded, NotFound
from perdure.gateway.request import Answer, Request
from perdure.gateway.task_handlers import REPLAYED, chosen_key
from perdure.store.views import JobView
from perdure.wire.telling import told, told_timeline


class JobHandlers:
    """What clients do with jobs."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def submit_job(self, request: Request) -> Answer:
        """Submit a job."""
        body: wire.SubmitJob = request.body
        if request.trace is not None:
            for task in body.tasks:
                task.trace = task.trace or request.trace
        key = body.idempotency_key if request.key is None else chosen_key(request.key, body.idempotency_key)
        answer = await self._operations.submit_job(
            JobRequest(
                name=body.name,
                tasks=cast("list[JobTaskRequest]", body.tasks),
                on_failure=body.on_failure,
                metadata=body.metadata,
                idempotency_key=key,
            ),
            request.by,
        )
        state = JobState.PENDING
        if answer.replayed:
            view = await self._operations.views.job(request.by.organization, answer.id)
            state = state if view is None else view.state
        shown = wire.SubmittedJob(id=answer.id, state=state, tasks=answer.task_ids, replayed=answer.replayed)
        place = (b"location", b"/v1/jobs/" + answer.id.encode())
        return Answer(shown, 200, (place, REPLAYED)) if answer.replayed else Answer(shown, 202, (place,))

    async def list_jobs(self, request: Request) -> Answer:
        """List jobs."""
        query: wire.JobQuery = request.query
        page = await self._operations.views.jobs(
            request.by.organization, query.state, query.limit, query.cursor or None, query.sort
        )
        return Answer(wire.JobPage(jobs=[told(row, wire.Job) for row in page.rows], cursor=page.cursor))

    async def show_job(self, request: Request) -> Answer:
        """Show one job."""
        return Answer(told(await self._found(request), wire.Job))

    async def list_job_tasks(self, request: Request) -> Answer:
        """Show the tasks of a job."""
        rows = await self._operations.views.job_tasks(request.by.organization, job_id(request))
        return Answer(wire.JobTasks(tasks=[told(row, wire.JobTask) for row in rows]))

    async def list_job_events(self, request: Request) -> Answer:
        """Show the history of a job."""
        events = await self._operations.views.job_events(request.by.organization, job_id(request))
        return Answer(wire.Events(events=[told(each, wire.Event) for each in events]))

    async def cancel_job(self, request: Request) -> Answer:
        """Stop a job."""
        body: wire.CancelJob = request.body
        stopping = await self._operations.cancel_job(job_id(request), request.by, body.reason)
        view = await self._found(request)
        if not stopping and view.state != JobState.CANCELLED:
            raise AlreadyEnded(f"job {view.id} has ended: {view.state}", job_id=view.id, state=view.state)
        record = None if view.cancel is None else told(view.cancel, wire.CancelRecord)
        shown = wire.JobStopping(id=view.id, state=view.state, cancel=record, already=not stopping)
        return Answer(shown, 200 if view.state == JobState.CANCELLED else 202)

    async def show_job_progress(self, request: Request) -> Answer:
        """Show how far a job is."""
        wanted = job_id(request)
        progress = await self._operations.views.job_progress(request.by.organization, wanted)
        if progress is None:
            raise NotFound(f"there is no job {wanted}", what="job", id=wanted)
        return Answer(told(progress, wire.JobProgress))

    async def show_job_timeline(self, request: Request) -> Answer:
        """Show when a job's tasks ran."""
        timeline = await read_timeline(self._operations.views, job_id(request), request.by)
        return Answer(told_timeline(timeline))

    async def retry_job(self, request: Request) -> Answer:
        """Run again what failed of a job."""
        retried = await self._operations.retry_job(job_id(request), request.by)
        view = await self._found(request)
        shown = wire.JobRetried(id=view.id, state=view.state, redriven=retried.redriven, revived=retried.revived)
        return Answer(shown, 202)

    async def _found(self, request: Request) -> JobView:
        wanted = job_id(request)
        view = await self._operations.views.job(request.by.organization, wanted)
        if view is None:
            raise NotFound(f"there is no job {wanted}", what="job", id=wanted)
        return view


def job_id(request: Request) -> str:
    """The id in the path. Raises `Malformed`."""
    return ids.parse(request.path["job_id"], "job")
