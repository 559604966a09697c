"""The timeline of a job: when each of its tasks waited and ran, and which of them decided how long the job took."""

from collections.abc import Sequence

import msgspec

from perdure.domain.limits import SECOND_US
from perdure.domain.states import JobState, TaskState
from perdure.domain.timeline import Span, run_seconds, timeline
from perdure.engine.requests import Principal
from perdure.errors import NotFound
from perdure.store.views import JobTaskView, JobView, Views


class TimelineTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task: `waited` seconds in its lane and `ran` seconds held, both of its last attempt."""

    id: str
    name: str
    kind: str
    state: TaskState
    parents: tuple[str, ...]
    queued_us: int | None = None
    leased_us: int | None = None
    finished_us: int | None = None
    waited: float = 0.0
    ran: float = 0.0
    critical: bool = False
    """It lies on the critical path."""


class JobTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ran; for one that has not ended, so far. Durations are seconds."""

    id: str
    name: str
    state: JobState
    created_us: int
    finished_us: int | None = None
    makespan: float
    """From the submit to the last end."""
    work: float
    """All run times together."""
    critical_path: float
    """The run times along the heaviest chain of dependencies: no number of workers is faster."""
    critical_tasks: tuple[str, ...]
    """The names along that chain, first to last."""
    parallelism: float
    """How many tasks ran at once on average."""
    tasks: tuple[TimelineTask, ...]
    """In the order in which they began; those that never did come last."""


async def read_timeline(views: Views, job_id: str, by: Principal) -> JobTimeline:
    """The timeline of one job. Raises `NotFound`."""
    job = await views.job(by.organization, job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id}: check its id", what="job", id=job_id)
    return timeline_of(job, await views.job_tasks(by.organization, job_id))


def timeline_of(job: JobView, tasks: Sequence[JobTaskView]) -> JobTimeline:
    """The timeline of a job and its tasks as they were read."""
    spans = {task.name: Span(task.parents, task.leased_us, task.finished_us) for task in tasks}
    measures = timeline(spans, job.created_us)
    critical = frozenset(measures.critical_tasks)
    shown = [_shown(task, task.name in critical) for task in tasks]
    shown.sort(key=lambda each: (each.leased_us is None, each.leased_us or 0))
    return JobTimeline(
        id=job.id,
        name=job.name,
        state=job.state,
        created_us=job.created_us,
        finished_us=job.finished_us,
        **measures._asdict(),
        tasks=tuple(shown),
    )


def _shown(task: JobTaskView, critical: bool) -> TimelineTask:
    waited_us = (task.leased_us or 0) - task.queued_us if task.queued_us is not None and task.leased_us else 0
    return TimelineTask(
        id=task.id,
        name=task.name,
        kind=task.kind,
        state=task.state,
        parents=task.parents,
        queued_us=task.queued_us,
        leased_us=task.leased_us,
        finished_us=task.finished_us,
        waited=max(0, waited_us) / SECOND_US,
        ran=run_seconds(task.leased_us, task.finished_us),
        critical=critical,
    )
