"""Waiting for jobs: whatever becomes of their tasks, and of themselves, meanwhile."""

import asyncio
from typing import Any

import pytest

from perdure.domain.states import JobState
from perdure.engine.wait_job import wait_jobs
from perdure.errors import NotFound, WaitTimedOut
from perdure.store.views import Page

JOB = "0198c5a4-7f3e-7abc-8def-000000000001"


class Views:
    """One job, as a test says."""

    def __init__(self) -> None:
        self.state: JobState | None = JobState.RUNNING
        self.open: list[Any] = [_Named("0198c5a4-7f3e-7abc-8def-000000000002")]

    async def job(self, organization: str, job_id: str) -> Any:
        return None if self.state is None else _Job(job_id, self.state, len(self.open))

    async def tasks(self, organization: str, where: Any, limit: int, cursor: str | None = None) -> Page:
        return Page(self.open, None)


class _Named:
    def __init__(self, id: str) -> None:
        self.id = id


class _Job(_Named):
    def __init__(self, id: str, state: JobState, open_tasks: int) -> None:
        super().__init__(id)
        self.state, self.open, self.total = state, open_tasks, 3


class Operations:
    """Tasks of the job are removed as soon as somebody waits for them."""

    def __init__(self) -> None:
        self.views = Views()
        self.waits = 0

    async def wait_ended(self, organization: str, task_ids: Any, timeout: float | None, *, known: bool) -> Any:
        self.waits += 1
        self.views.open = []
        raise NotFound("gone", what="task", id=task_ids[0])


async def test_a_job_whose_tasks_are_removed_is_looked_at_again() -> None:
    operations: Any = Operations()
    waiting = asyncio.create_task(wait_jobs(operations, "default", [JOB]))
    while not operations.waits:
        await asyncio.sleep(0)
    operations.views.state = JobState.SUCCEEDED
    [job] = await asyncio.wait_for(waiting, 30)
    assert job.state == JobState.SUCCEEDED


async def test_a_job_that_is_removed_is_not_waited_for() -> None:
    operations: Any = Operations()
    waiting = asyncio.create_task(wait_jobs(operations, "default", [JOB]))
    while not operations.waits:
        await asyncio.sleep(0)
    operations.views.state = None
    with pytest.raises(NotFound):
        await asyncio.wait_for(waiting, 30)


async def test_a_job_that_stays_open_without_open_tasks_is_waited_for_no_longer_than_asked() -> None:
    operations: Any = Operations()
    operations.views.open = []
    with pytest.raises(WaitTimedOut) as error:
        await wait_jobs(operations, "default", [JOB], 0.05)
    assert "after 0.05 s" in str(error.value)
