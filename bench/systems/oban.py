"""Oban on PostgreSQL by psycopg, with uvloop, 20 tasks at once."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from oban import Oban, worker
from psycopg_pool import AsyncConnectionPool

from bench.systems.commands import AwaitedSystem, Submit, SubmitMany, main

CONCURRENCY = 20
POOL = 10
QUEUE = "default"


class OnOban(AwaitedSystem):
    """Workers are classes of their own, so they are made where the probes are known."""

    run = staticmethod(uvloop.run)

    def _workers(self) -> dict[str, type]:
        probes = self.probes

        @worker(queue=QUEUE)
        class Noop:
            async def process(self, job: object) -> None:
                probes.tick()

        @worker(queue=QUEUE)
        class Probe:
            async def process(self, job: object) -> None:
                probes.begun(int(job.args["payload"]))  # type: ignore[attr-defined]

        return {"noop": Noop, "probe": Probe}

    async def prepare(self) -> None:
        """Make the schema."""
        command = [Path(sys.executable).parent / "oban", "install", "--dsn", self.url]
        subprocess.run(command, check=True, stdout=sys.stderr)

    async def work(self) -> None:
        """Work until SIGTERM."""
        self._workers()
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        async with (
            AsyncConnectionPool(self.url, min_size=1, max_size=POOL, open=False) as pool,
            Oban(pool=pool, queues={QUEUE: CONCURRENCY}, node=f"bench-{os.getpid()}"),
        ):
            await ended.wait()

    @asynccontextmanager
    async def submitter(self) -> AsyncIterator[tuple[Submit, SubmitMany]]:
        """By a pool."""
        workers = self._workers()
        async with AsyncConnectionPool(self.url, min_size=1, max_size=POOL, open=False) as pool:
            oban = Oban(pool=pool)

            async def submit(kind: str, payload: str) -> None:
                await workers[kind].enqueue({"payload": payload})

            async def submit_many(kind: str, payloads: list[str]) -> None:
                await oban.enqueue_many([workers[kind].new({"payload": each}) for each in payloads])

            yield submit, submit_many


if __name__ == "__main__":
    main(OnOban)
