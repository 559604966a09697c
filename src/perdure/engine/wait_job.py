"""Wait for jobs to end: by its last open tasks, since the state of each follows from theirs."""

import asyncio
import contextlib
from collections.abc import Sequence

from perdure.domain.states import JOB_ENDED, UNFINISHED
from perdure.engine.engine import Operations
from perdure.engine.quantities import check_timeout
from perdure.errors import NotFound, WaitTimedOut
from perdure.store.views import JobView, TaskFilter, Views

WATCHED_TASKS = 100
"""How many open tasks of a job a wait watches at once."""
LOOK_AGAIN_SECONDS = 0.01


async def wait_jobs(
    operations: Operations, organization: str, job_ids: Sequence[str], timeout: float | None = None
) -> list[JobView]:
    """The jobs when their tasks have ended. Raises `WaitTimedOut` after `timeout` seconds, `NotFound` and `Invalid`."""
    check_timeout(timeout)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            return [await _ended(operations, organization, job_id) for job_id in job_ids]
    views = [await _found(operations.views, organization, job_id) for job_id in job_ids]
    for view in views:
        if view.state not in JOB_ENDED:
            raise WaitTimedOut(
                f"job {view.id} has not ended after {round(timeout or 0.0, 3):g} s; it goes on:"
                f" {view.open} of {view.total} tasks were open",
                job_id=view.id,
            )
    return views


async def _ended(operations: Operations, organization: str, job_id: str) -> JobView:
    while (view := await _found(operations.views, organization, job_id)).state not in JOB_ENDED:
        open_ids = await _last_open(operations.views, organization, job_id)
        if open_ids:
            # One that was removed meanwhile is no reason to wait on: the job itself may be gone.
            with contextlib.suppress(NotFound):
                await operations.wait_ended(organization, open_ids, None, known=True)
        else:
            # Its last task ended between the two looks, or others come.
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return view


async def _found(views: Views, organization: str, job_id: str) -> JobView:
    view = await views.job(organization, job_id)
    if view is None:
        raise NotFound(f"there is no job {job_id}; its retention may be over", what="job", id=job_id)
    return view


async def _last_open(views: Views, organization: str, job_id: str) -> list[str]:
    """The open tasks to watch: the newest, which end last as a rule, as parents come before their children."""
    where = TaskFilter(job=job_id, states=tuple(sorted(UNFINISHED)))
    page = await views.tasks(organization, where, WATCHED_TASKS)
    while not page.rows and page.cursor is not None:
        page = await views.tasks(organization, where, WATCHED_TASKS, page.cursor)
    return [task.id for task in page.rows]
