"""PgQueuer: heartbeats of ten seconds; a key holds while its task waits or runs. It counts no lost workers."""

import json
import signal
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.errors import DuplicateJobError
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.faults.notes import Notes
from bench.faults.programs.commands import AT_ONCE, LEASE_SECONDS, main, run


class Pgqueuer:
    """One entrypoint."""

    def __init__(self, url: str, notes: Notes) -> None:
        self.url = url
        self.notes = notes

    async def prepare(self) -> None:
        """Make the schema."""
        connection = await asyncpg.connect(self.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def work(self) -> None:
        """Work until ended. It ends when its listener fails, so that whoever looks after it starts it again."""
        queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.url)))

        @queue.entrypoint("work")
        async def work(job: Job) -> None:
            await run(self.notes, *json.loads(job.payload or b"[]"))

        get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
        await queue.run(
            batch_size=AT_ONCE,
            max_concurrent_tasks=2 * AT_ONCE,
            heartbeat_timeout=timedelta(seconds=LEASE_SECONDS),
            shutdown_on_listener_failure=True,
        )

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Callable[[int, float], Any]]:
        """With the number as `dedupe_key`; that it is there already is an acknowledgement."""
        connection = await asyncpg.connect(self.url)
        queries = Queries(AsyncpgDriver(connection))

        async def ask(number: int, seconds: float) -> None:
            with suppress(DuplicateJobError):
                await queries.enqueue("work", json.dumps([number, seconds]).encode(), dedupe_key=f"task-{number}")

        try:
            yield ask
        finally:
            await connection.close(timeout=1)


if __name__ == "__main__":
    main(Pgqueuer)
