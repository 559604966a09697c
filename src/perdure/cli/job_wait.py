"""Waiting for jobs, with progress by their tasks."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.cli.job_failures import failures_of
from perdure.cli.job_views import shown_counts
from perdure.cli.output import plain, write_json, write_line, write_table
from perdure.cli.problems import FAILED, SUCCEEDED
from perdure.cli.session import Session, on_store
from perdure.cli.task_wait import watched, watching
from perdure.cli.unserved import Waiting, note_unserved
from perdure.errors import WaitTimedOut

if TYPE_CHECKING:
    from perdure.store.views import JobView


def wait_for(store: str | None, job_ids: Sequence[str], *, timeout: float | None, as_json: bool) -> int:
    """Wait for the end of all of these jobs, write how they ended, and return the exit code.

    Raises `WaitTimedOut`, and `NotFound` for a job that the store does not have.
    """
    from perdure.domain.states import GOOD_JOB_ENDS

    try:
        ended, counts, failures = on_store(store, lambda session: _ended(session, job_ids, timeout, note=not as_json))
    except WaitTimedOut as error:
        advice = "`perdure job show ID` lists its tasks, `perdure task why ID` tells what keeps one"
        raise WaitTimedOut(f"{error.message}; {advice}", **error.fields) from None
    if as_json:
        write_json({"jobs": [plain(each) for each in ended]})
    else:
        write_table(
            ("ID", "NAME", "STATE", "TASKS"),
            [(each.id, each.name, each.state, shown_counts(counts[each.id])) for each in ended],
            "nothing has ended",
        )
        for failure in failures:
            write_line(failure)
    return SUCCEEDED if all(each.state in GOOD_JOB_ENDS for each in ended) else FAILED


async def _ended(
    session: Session, job_ids: Sequence[str], timeout: float | None, *, note: bool
) -> "tuple[list[JobView], dict[str, dict[str, int]], list[str]]":
    """The jobs as they ended, their tasks by state, and why some of these failed.

    A job's own counters tell each bad end as failed: people are told the states that they see elsewhere.
    """
    from perdure.domain.states import GOOD_JOB_ENDS

    jobs = await _wait(session, job_ids, timeout, note=note)
    counts = {job.id: job.counts for job in jobs}
    failures: list[str] = []
    for job in jobs:
        if note and (job.state not in GOOD_JOB_ENDS or job.counts.get("failed", 0)):
            tasks = await session.views.job_tasks(session.organization, job.id)
            counts[job.id] = dict(Counter(str(task.state) for task in tasks))
            if job.state not in GOOD_JOB_ENDS:
                failures += await failures_of(session, tasks)
    return jobs, counts, failures


async def _wait(session: Session, job_ids: Sequence[str], timeout: float | None, *, note: bool) -> "list[JobView]":
    from perdure.cli.job import found
    from perdure.engine.wait_job import wait_jobs

    async def look() -> "list[JobView]":
        return [await found(session, job_id) for job_id in job_ids]

    async def done() -> int:
        return sum(job.total - job.open for job in await look())

    jobs = await look()
    if note:
        await note_unserved(session, await _waiting(session, jobs))
    total = sum(job.total for job in jobs)
    async with watched(total, "tasks") as advance, watching(done, advance):
        return await wait_jobs(session.operations, session.organization, job_ids, timeout)


async def note_waiting(session: Session, job_id: str) -> None:
    """Write notes where nobody is there to run tasks of a job."""
    from perdure.cli.job import found

    await note_unserved(session, await _waiting(session, [await found(session, job_id)]))


async def _waiting(session: Session, jobs: "Sequence[JobView]") -> set[Waiting]:
    """What the first tasks of jobs that are not ended need of a worker."""
    from perdure.domain.limits import LIST_MAX_ROWS
    from perdure.domain.states import UNFINISHED
    from perdure.store.views import TaskFilter

    found: set[Waiting] = set()
    for job in jobs:
        if job.finished_us is None:
            where = TaskFilter(job=job.id, states=tuple(sorted(UNFINISHED)))
            page = await session.views.tasks(session.organization, where, LIST_MAX_ROWS)
            found |= {Waiting(task.kind, task.queue) for task in page.rows}
    return found
