"""perdure, through its public API."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

import perdure
from bench.systems.commands import BULK, AwaitedSystem, Submit, SubmitMany, main
from bench.systems.probes import Probes

CONCURRENCY = 100
MARK_LEASE_SECONDS = 5
KINDS = 20
ORGANIZATIONS = 50


class Ours(AwaitedSystem):
    """An app with handlers that do nothing but leave the time."""

    def __init__(self, url: str, probes: Probes) -> None:
        super().__init__(url, probes)
        self.app = perdure.App(url)

        @self.app.task("noop")
        async def noop(data: str) -> None:
            probes.tick()

        @self.app.task("probe")
        async def probe(data: str) -> int:
            probes.begun(int(data))
            return 1

        @self.app.task("mark", lease=MARK_LEASE_SECONDS)
        async def mark(number: int) -> None:
            probes.mark(number)

        @self.app.task("who")
        async def who(number: int) -> None:
            probes.mark(os.getpid())

    async def prepare(self) -> None:
        """Make the schema: the first use does."""
        async with self.app:
            pass

    async def work(self) -> None:
        """Work until SIGTERM."""
        await self.app.run(concurrency=CONCURRENCY)

    async def work_some(self, kinds: int, organizations: int) -> None:
        """Work until SIGTERM on the first of the kinds of the first of the organizations."""

        async def handle(number: int) -> None:
            self.probes.mark(number)
            self.probes.tick()

        app = perdure.App(self.url)
        for kind in range(kinds):
            app.task(f"kind-{kind}")(handle)
        names = tuple(f"organization-{each}" for each in range(organizations))
        await app.run(concurrency=CONCURRENCY, organizations=names)

    async def work_late(self) -> None:
        """Submit a task within a transaction of one's own, and commit that when a line comes."""
        async with self.app as app:
            with psycopg.connect(self.url) as connection:
                await app.submit("probe", data="0", connection=connection)
                self.probes.mark(0)
                sys.stdin.readline()
                self.probes.mark(time.monotonic_ns())
                connection.commit()

    @asynccontextmanager
    async def submitter(self) -> AsyncIterator[tuple[Submit, SubmitMany]]:
        """By the app."""
        async with self.app as app:

            async def submit(kind: str, payload: str) -> Any:
                return await app.submit(kind, data=payload)

            async def submit_many(kind: str, payloads: list[str]) -> None:
                await app.submit_many([app.call(kind, data=each) for each in payloads])

            yield submit, submit_many

    async def fill_kind(self, kind: str, tasks: int) -> None:
        """Submit tasks of a kind that may be nobody's, each with a number."""
        async with self.app as app:
            for first in range(0, tasks, BULK):
                numbers = range(first, min(first + BULK, tasks))
                await app.submit_many([app.call(kind, number=number) for number in numbers])

    async def fill_mixture(self, each: int) -> None:
        """Submit so many tasks of each kind of each organization, each with a number of its own."""
        for organization in range(ORGANIZATIONS):
            first = organization * KINDS
            async with perdure.App(self.url, organization=f"organization-{organization}") as app:
                calls = [
                    app.call(f"kind-{kind}", number=(first + kind) * each + number)
                    for number in range(each)
                    for kind in range(KINDS)
                ]
                await app.submit_many(calls)

    async def shape(self, name: str, width: int) -> float:
        """Seconds from the submit of tasks until all have ended: `single` ones, or a job of one task that so many
        follow (`out`), or of one that follows so many (`in`). The worker is in the same process.
        """
        async with self.app as app:
            worker = app.worker(concurrency=CONCURRENCY)
            running = asyncio.create_task(worker.run())
            begin = time.perf_counter()
            await (self._single(app, width) if name == "single" else self._job(app, name, width))
            taken = time.perf_counter() - begin
            worker.drain()
            await running
        return taken

    async def _single(self, app: perdure.App, width: int) -> None:
        for first in range(0, width, BULK):
            await app.submit_many([app.call("noop", data="x") for _ in range(min(BULK, width - first))])
        views = (await app.operations()).views
        while sum(row.tasks for row in (await views.overview("default")).counts if row.state == "succeeded") < width:
            await asyncio.sleep(0.02)

    async def _job(self, app: perdure.App, name: str, width: int) -> None:
        with app.job(f"fan-{name}") as job:
            if name == "out":
                first = job.add("noop", name="first", data="x")
                for number in range(width):
                    job.add("noop", name=f"task-{number}", after=[first], data="x")
            else:
                wide = [job.add("noop", name=f"task-{number}", data="x") for number in range(width)]
                job.add("noop", name="last", after=wide, data="x")
        await (await job.submit()).wait()

    async def results(self, tasks: int) -> list[float]:
        """Milliseconds from each submit to its result in the submitter's hands, one by one on an idle worker."""
        taken = []
        async with self.app as app:
            before = self.probes.waited()
            async for _ in self.spaced(tasks, before):
                begin = time.monotonic_ns()
                await (await app.submit("probe", data=str(begin))).result()
                taken.append((time.monotonic_ns() - begin) / 1e6)
        return taken


if __name__ == "__main__":
    main(Ours)
