"""Through one gateway process: a remote worker, single submits of 32 clients, the time to the start, idle workers.

Each beside what it is compared with, in the same run: a worker on the file itself, and a bare Starlette echo.
"""

import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import perdure
from bench import servers
from bench.perdure_app import Bench
from perdure.client.pool import Place, Pool

CLIENTS = 32
CONCURRENCY = 100
IDLE_SECONDS = 15
WAIT_SECONDS = 25.0
"""How long a claim of a worker waits at its gateway."""
TARGETS = {
    # ratio: (numerator, denominator, must, goal)
    "remote worker / direct worker": ("remote drain", "direct drain", None, 0.6),
    "single submits / bare echo": ("submits of 32 clients", "echoes of 32 clients", None, 0.6),
    "submit to start, remote / direct": ("remote start p50 ms", "direct start p50 ms", 2.0, 1.5),
}
MUST = {"remote drain": 4_000, "submits of 32 clients": 3_000}


async def echo(request: Request) -> Response:
    """The least that a service does with the same body."""
    return Response(await request.body(), 202, media_type="application/json")


app = Starlette(routes=[Route("/v1/tasks", echo, methods=["POST"])])


@contextlib.asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """A server process on a free port, `{port}` in its arguments; yields the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", *(each.replace("{port}", str(port)) for each in arguments)]
    quiet = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(*command, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.05)
        yield port, server
    finally:
        server.terminate()
        await server.wait()


def gateway_of(store: Path | str) -> Any:
    """A gateway process on a store."""
    return process("perdure", "serve", "--role", "gateway", "--store", str(store), "--listen", "127.0.0.1:{port}")


def echo_of() -> Any:
    """A bare echo."""
    return process("uvicorn", "bench.gateway:app", "--port", "{port}", "--no-access-log", "--log-level", "error")


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n".encode()
    return head + b"content-length: %d\r\n\r\n%s" % (len(body), body)


async def posts(port: int, size: int, requests: int) -> float:
    """Single submits a second over kept connections."""
    data = _request("POST", "/v1/tasks", json.dumps({"kind": "noop", "payload": {"data": "x" * size}}).encode())
    pool = Pool(Place("127.0.0.1", port, None), CLIENTS)

    async def client(count: int) -> None:
        for _ in range(count):
            answer = await pool.ask(data, 30, 60)
            if answer.status != 202:
                raise SystemExit(f"{answer.status}: {answer.body[:300]!r}")

    await client(50)
    start = time.perf_counter()
    await asyncio.gather(*(client(requests // CLIENTS) for _ in range(CLIENTS)))
    rate = requests // CLIENTS * CLIENTS / (time.perf_counter() - start)
    await pool.close()
    return rate


async def drain(store: str, size: int, tasks: int) -> float:
    """Tasks a second of one worker process, from its start to the last durable settlement."""
    bench_app = perdure.App(store)
    ran = 0
    done = asyncio.Event()

    @bench_app.task("noop")
    async def noop(data: str) -> None:
        nonlocal ran
        ran += 1
        if ran == tasks:
            done.set()

    async with bench_app:
        for _ in range(tasks // 1_000):
            await bench_app.submit_many([noop.call(data="x" * size) for _ in range(1_000)])
        worker = bench_app.worker(concurrency=CONCURRENCY, duties=False)
        start = time.perf_counter()
        running = asyncio.create_task(worker.run())
        await done.wait()
        worker.drain()
        await running
        return tasks / (time.perf_counter() - start)


async def start_latency(store: str, size: int, tasks: int) -> float:
    """Milliseconds from submit to the handler's first line, on an idle worker: p50."""
    bench = Bench.__new__(Bench)
    bench.app, bench.payload, bench.started = perdure.App(store), "x" * size, []

    @bench.app.task("probe")
    async def probe(data: str) -> None:
        bench.started.append(time.perf_counter())

    taken = []
    async with bench.app, bench.app.worker(concurrency=4, duties=False):
        await asyncio.sleep(1)
        for _ in range(tasks):
            seen = len(bench.started)
            begin = time.perf_counter()
            await bench.app.submit(probe, data=bench.payload)
            while len(bench.started) == seen:
                await asyncio.sleep(0)
            taken.append((bench.started[-1] - begin) * 1000)
            await asyncio.sleep(0.01)
    return statistics.median(taken)


class IdleWorker:
    """What a worker does that has nothing to do, on the one connection that it holds: a claim waits, which is its sign
    of life, and hears of its orders.
    """

    def __init__(self, port: int) -> None:
        self._id = str(uuid4())
        self._pool = Pool(Place("127.0.0.1", port, None), 4)

    async def register(self) -> None:
        """Make it known."""
        await self._post("register", id=self._id, name="idle", kinds=["never"], queues=["default"], capacity=10, pid=1)

    async def claim(self) -> None:
        """Claim for ever."""
        wait = random.uniform(0, WAIT_SECONDS)
        while True:
            await self._post("claim", worker_id=self._id, count=10, wait=wait, request_id=str(uuid4()), order="work")
            wait = WAIT_SECONDS

    async def close(self) -> None:
        """Let go of the connections."""
        await self._pool.close()

    async def _post(self, verb: str, **body: Any) -> None:
        answer = await self._pool.ask(_request("POST", f"/v1/worker/{verb}", json.dumps(body).encode()), 60, 60)
        if answer.status >= 300:
            raise SystemExit(f"{answer.status}: {answer.body[:300]!r}")


async def idle(port: int, server: asyncio.subprocess.Process, workers: int) -> tuple[float, float, int]:
    """Percent of a core, MB and connections of the gateway, while so many workers wait for work that does not come."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    standing = [IdleWorker(port) for _ in range(workers)]
    for each in standing:
        await each.register()
    doing = [asyncio.create_task(each.claim()) for each in standing]
    await asyncio.sleep(10)
    seen = psutil.Process(server.pid)
    before = sum(seen.cpu_times()[:2])
    held = 0
    for _ in range(IDLE_SECONDS):
        await asyncio.sleep(1)
        held = max(held, len([each for each in seen.net_connections() if each.status == psutil.CONN_ESTABLISHED]))
    used = (sum(seen.cpu_times()[:2]) - before) / IDLE_SECONDS * 100
    memory = seen.memory_info().rss / 1024 / 1024
    for task in doing:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.wait(doing)
    for each in standing:
        await each.close()
    return used, memory, held


async def one_round(store: Callable[[str], str], size: int, tasks: int, requests: int) -> dict[str, float]:
    """Every figure once, each on a new store of its name; what is compared runs one after the other."""
    figures: dict[str, float] = {"direct drain": await apart("drain", store("direct"), size, tasks)}
    async with gateway_of(store("remote")) as (port, _):
        figures["remote drain"] = await apart("drain", f"http://127.0.0.1:{port}", size, tasks)
    figures["direct start p50 ms"] = await apart("start_latency", store("latency"), size, 100)
    async with gateway_of(store("latency_remote")) as (port, _):
        figures["remote start p50 ms"] = await apart("start_latency", f"http://127.0.0.1:{port}", size, 100)
    async with echo_of() as (port, _):
        figures["echoes of 32 clients"] = await apart("posts", port, size, requests)
    async with gateway_of(store("posts")) as (port, _):
        figures["submits of 32 clients"] = await apart("posts", port, size, requests)
    return figures


async def apart(part: str, *arguments: object) -> float:
    """Run a part in a process of its own."""
    command = [sys.executable, "-m", "bench.gateway", part, *map(str, arguments)]
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await running.communicate()
    if running.returncode:
        raise SystemExit(f"{part} failed")
    return float(output.splitlines()[-1])


async def idle_workers(store: Callable[[str], str], numbers: tuple[int, ...]) -> list[str]:
    """A line for each number of idle workers."""
    lines = []
    for workers in numbers:
        async with gateway_of(store(f"idle{workers}")) as (port, server):
            used, memory, held = await idle(port, server, workers)
        lines.append(f"| {workers} idle workers | {used:.1f} % of a core | {memory:.0f} MB | {held} |")
    return lines


def report(rounds: int, tasks: int, requests: int, folder: Path, *, quick: bool) -> list[str]:
    """The lines of the report, on SQLite."""
    return tables(rounds, tasks, requests, lambda name: str(folder / f"{name}.db"), quick=quick)


def tables(rounds: int, tasks: int, requests: int, store: Callable[[str], str], *, quick: bool) -> list[str]:
    """The figures of so many rounds, and of idle workers. `store` makes a new store of a name and tells its URL."""
    stores = (partial(_of_round, store, number) for number in range(rounds))
    done = [asyncio.run(one_round(each, 50, tasks, requests)) for each in stores]
    lines = ["| figure | median | lowest | highest | must |", "|---|---|---|---|---|"]
    for key in done[0]:
        values = [each[key] for each in done]
        must = f"{MUST[key]:,}" if key in MUST else ""
        lines.append(f"| {key} | {statistics.median(values):,.1f} | {min(values):,.1f} | {max(values):,.1f} | {must} |")
    lines += ["", "| ratio | median of rounds | must | goal |", "|---|---|---|---|"]
    for name, (above, below, must_ratio, goal) in TARGETS.items():
        ratio = statistics.median(each[above] / each[below] for each in done)
        lines.append(f"| {name} | {ratio:.2f} | {must_ratio or ''} | {goal} |")
    lines += ["", "| idle | processor | memory | connections |", "|---|---|---|---|"]
    return lines + asyncio.run(idle_workers(store, (50,) if quick else (200, 1_000)))


def _of_round(store: Callable[[str], str], number: int, name: str) -> str:
    return store(f"{name}_{number}")


def on_postgres(rounds: int, tasks: int, requests: int) -> list[str]:
    """The same lines, with a PostgreSQL server of its own beside the gateway."""
    with servers.postgres() as server:
        return tables(rounds, tasks, requests, server.fresh, quick=False)


PARTS: dict[str, Callable[..., Awaitable[float]]] = {"drain": drain, "start_latency": start_latency, "posts": posts}

if __name__ == "__main__":
    os.environ.setdefault("PERDURE_LOG_LEVEL", "warning")
    chosen, first, *numbers = sys.argv[1:]
    if chosen == "postgres":
        print("\n".join(on_postgres(int(first), *map(int, numbers))))
    else:
        place: Any = int(first) if chosen == "posts" else first
        print(asyncio.run(PARTS[chosen](place, *map(int, numbers))))  # type: ignore[arg-type]
