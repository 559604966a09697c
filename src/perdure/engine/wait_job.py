"""Wait for a job to end: by its last open tasks, since its state follows from theirs."""

import asyncio

from perdure.domain.states import JOB_ENDED, UNFINISHED
from perdure.engine.engine import Operations
from perdure.errors import NotFound, WaitTimedOut
from perdure.store.views import JobView, TaskFilter, Views

WATCHED_TASKS = 100
"""How many open tasks of a job a wait watches at once."""


async def wait_job(operations: Operations, organization: str, job_id: str, timeout: float | None = None) -> JobView:
    """The job when every task of it has ended. Raises `WaitTimedOut` after `timeout` seconds, and `NotFound`."""
    loop = asyncio.get_running_loop()
    until = None if timeout is None else loop.time() + timeout
    while (view := await _found(operations.views, organization, job_id)).state not in JOB_ENDED:
        open_ids = await _last_open(operations.views, organization, job_id)
        if not open_ids:
            continue
        left = None if until is None else max(0.0, until - loop.time())
        try:
            await operations.wait_ended(organization, open_ids, left, known=True)
        except WaitTimedOut:
            raise WaitTimedOut(
                f"job {job_id} has not ended after {round(timeout or 0.0, 3):g} s; it goes on:"
                f" {view.open} of {view.total} tasks were open",
                job_id=job_id,
            ) from None
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
