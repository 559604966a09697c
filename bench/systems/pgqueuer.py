"""PgQueuer on PostgreSQL by asyncpg, with uvloop and batches of 100."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.systems.commands import AwaitedSystem, Submit, SubmitMany, main

BATCH = 100
POOL = 10


class Pgqueuer(AwaitedSystem):
    """One connection for a lone caller's sake, a pool for many."""

    run = staticmethod(uvloop.run)

    async def prepare(self) -> None:
        """Make the schema."""
        connection = await asyncpg.connect(self.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def work(self) -> None:
        """Work until SIGTERM."""
        queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.url)))

        @queue.entrypoint("noop")
        async def noop(job: Job) -> None:
            self.probes.tick()

        @queue.entrypoint("probe")
        async def probe(job: Job) -> None:
            self.probes.begun(int(job.payload or b"0"))

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
        await queue.run(batch_size=BATCH)

    @asynccontextmanager
    async def submitter(self) -> AsyncIterator[tuple[Submit, SubmitMany]]:
        """By a pool of connections."""
        async with asyncpg.create_pool(self.url, min_size=POOL, max_size=POOL) as pool:
            queries = Queries(AsyncpgPoolDriver(pool))

            async def submit(kind: str, payload: str) -> None:
                await queries.enqueue(kind, payload.encode())

            async def submit_many(kind: str, payloads: list[str]) -> None:
                count = len(payloads)
                await queries.enqueue([kind] * count, [each.encode() for each in payloads], [0] * count)

            yield submit, submit_many


if __name__ == "__main__":
    main(Pgqueuer)
