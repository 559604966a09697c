"""Procrastinate: stalled jobs are looked for each minute, as its documentation shows.

A key holds while its task waits.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued

from bench.faults.notes import Notes
from bench.faults.programs.commands import AT_ONCE, LEASE_SECONDS, main, run


class Procrastinate:
    """An app with one task, and the one that looks for stalled jobs."""

    def __init__(self, url: str, notes: Notes) -> None:
        self.app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=12))

        @self.app.task(name="work")
        async def work(number: int, seconds: float) -> None:
            await run(notes, number, seconds)

        @self.app.periodic(cron="* * * * *")
        @self.app.task(queueing_lock="retry_stalled_jobs", pass_context=True)
        async def retry_stalled_jobs(context: JobContext, timestamp: int) -> None:
            stalled = await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=LEASE_SECONDS)
            for job in stalled:
                await self.app.job_manager.retry_job(job)

    async def prepare(self) -> None:
        """Make the schema."""
        async with self.app.open_async():
            await self.app.schema_manager.apply_schema_async()

    async def work(self) -> None:
        """Work until ended."""
        async with self.app.open_async():
            await self.app.run_worker_async(
                concurrency=AT_ONCE,
                update_heartbeat_interval=LEASE_SECONDS / 3,
                stalled_worker_timeout=LEASE_SECONDS,
            )

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Callable[[int, float], Any]]:
        """With the number as `queueing_lock`; that it waits already is an acknowledgement."""

        async def ask(number: int, seconds: float) -> None:
            task = self.app.tasks["work"].configure(queueing_lock=f"task-{number}")
            with suppress(AlreadyEnqueued):
                await task.defer_async(number=number, seconds=seconds)

        async with self.app.open_async():
            yield ask


if __name__ == "__main__":
    main(Procrastinate)
