"""perdure on a SQLite file, through the public API, in one process."""

import asyncio
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import perdure

CONCURRENCY = 100
SUBMITTERS = 32


class Bench:
    """One app on a fresh file, with a handler that does nothing."""

    def __init__(self, folder: Path, payload: str, name: str = "bench") -> None:
        self.app = perdure.App(str(folder / f"{name}.db"))
        self.payload = payload
        self.started: asyncio.Future[float] | None = None
        self.ran = 0

        @self.app.task("noop")
        async def noop(data: str) -> None:
            self.ran += 1

        @self.app.task("probe")
        async def probe(data: str) -> None:
            assert self.started is not None
            self.started.set_result(time.perf_counter())

        self.noop, self.probe = noop, probe

    async def submit_single(self, tasks: int) -> float:
        """Tasks a second, one durable submit after the other."""
        start = time.perf_counter()
        for _ in range(tasks):
            await self.app.submit(self.noop, data=self.payload)
        return tasks / (time.perf_counter() - start)

    async def submit_concurrent(self, tasks: int) -> float:
        """Tasks a second, by callers that each submit one at a time."""

        async def caller() -> None:
            for _ in range(tasks // SUBMITTERS):
                await self.app.submit(self.noop, data=self.payload)

        start = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(SUBMITTERS)))
        return tasks / (time.perf_counter() - start)

    async def submit_bulk(self, tasks: int, batch: int) -> float:
        """Tasks a second, `batch` in each call."""
        start = time.perf_counter()
        for _ in range(tasks // batch):
            await self.app.submit_many([self.noop.call(data=self.payload) for _ in range(batch)])
        return tasks / (time.perf_counter() - start)

    async def drain(self, tasks: int) -> float:
        """Tasks run and settled a second, from the worker's start to the last durable settlement."""
        self.ran = 0
        worker = self.app.worker(concurrency=CONCURRENCY)
        start = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while await self._waiting():
            await asyncio.sleep(0.01)
        rate = tasks / (time.perf_counter() - start)
        worker.drain()
        await running
        if self.ran != tasks:
            raise SystemExit(f"{self.ran} runs of {tasks} tasks")
        return rate

    async def _waiting(self) -> int:
        overview = await (await self.app.operations()).views.overview("default")
        ended = ("succeeded", "failed", "dead_lettered")
        return sum(row.tasks for row in overview.counts if row.state not in ended)

    async def latency(self, tasks: int) -> tuple[float, float]:
        """Milliseconds from the call of submit to the handler's first line, one by one on an idle worker: p50, p99."""
        worker = self.app.worker(concurrency=4)
        running = asyncio.create_task(worker.run())
        taken = []
        for _ in range(tasks):
            self.started = asyncio.get_running_loop().create_future()
            begin = time.perf_counter()
            await self.app.submit(self.probe, data=self.payload)
            taken.append((await self.started - begin) * 1000)
            await asyncio.sleep(0.01)
        worker.drain()
        await running
        taken.sort()
        return statistics.median(taken), taken[min(len(taken) - 1, int(len(taken) * 0.99))]


async def measure(folder: Path, payload: str, tasks: int, single: int) -> dict[str, Any]:
    """Every figure of one round."""
    bench = Bench(folder, payload)
    async with bench.app:
        figures: dict[str, Any] = {
            "submit one by one": await bench.submit_single(single),
            "submit 32 at once": await bench.submit_concurrent(single * 4),
            "submit bulk by 100": await bench.submit_bulk(tasks, 100),
            "submit bulk by 1000": await bench.submit_bulk(tasks, 1000),
        }
        waiting = single + single * 4 // SUBMITTERS * SUBMITTERS + tasks // 100 * 100 + tasks // 1000 * 1000
        figures["drain"] = await bench.drain(waiting)
        figures["latency p50 ms"], figures["latency p99 ms"] = await bench.latency(200)
    figures["rss MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


async def _main() -> None:
    import json
    import sys

    folder, size, tasks, single = sys.argv[1:5]
    print(json.dumps(await measure(Path(folder), "x" * int(size), int(tasks), int(single))))


if __name__ == "__main__":
    asyncio.run(_main())
