"""Does time grow in line with size? Wide and deep jobs, and views beside a million ended tasks."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw

import perdure
from perdure.domain.states import TaskState
from perdure.store.views import TaskFilter

CONCURRENCY = 100


def _app(folder: Path, name: str) -> perdure.App:
    app = perdure.App(str(folder / f"{name}.db"))

    @app.task("noop")
    async def noop() -> None:
        return None

    @app.task("fail", max_attempts=1)
    async def fail() -> None:
        raise ValueError("on purpose")

    return app


async def _run(app: perdure.App, job: Any) -> tuple[float, float]:
    """Seconds to submit the job, and seconds to its end."""
    begin = time.perf_counter()
    handle = await job.submit()
    submitted = time.perf_counter()
    worker = app.worker(concurrency=CONCURRENCY)
    running = asyncio.create_task(worker.run())
    await handle.wait()
    ended = time.perf_counter()
    worker.drain()
    await running
    return submitted - begin, ended - submitted


async def fan_out(folder: Path, width: int) -> tuple[float, float]:
    """One parent, `width` children."""
    async with _app(folder, f"out-{width}") as app:
        with app.job("fan-out") as job:
            parent = job.add("noop", name="parent")
            for number in range(width):
                job.add("noop", name=f"child-{number}", after=[parent])
            return await _run(app, job)


async def fan_in(folder: Path, width: int) -> tuple[float, float]:
    """`width` parents, one child."""
    async with _app(folder, f"in-{width}") as app:
        with app.job("fan-in") as job:
            parents = [job.add("noop", name=f"parent-{number}") for number in range(width)]
            job.add("noop", name="child", after=parents)
            return await _run(app, job)


async def cascade(folder: Path, length: int) -> tuple[float, float]:
    """A failed task, and a chain of `length` that falls with it."""
    async with _app(folder, f"chain-{length}") as app:
        with app.job("chain") as job:
            last = job.add("fail", name="first")
            for number in range(length - 1):
                last = job.add("noop", name=f"link-{number}", after=[last])
            return await _run(app, job)


def _fill(path: Path, tasks: int) -> None:
    """A history of ended tasks, written as the store would have left it."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA synchronous = off").fetchall()
    numbers = f"WITH RECURSIVE number (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < {tasks})"
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        f"""{numbers}
        INSERT INTO perdure_tasks (n, organization, id, lane, payload, encoding, principal, initiator,
            created_us, execution_limit_us, lease_us, max_attempts, max_losses, on_loss)
        SELECT 1000 + i, 'default', printf('%08x-0000-7000-8000-%012x', i, i), 1, CAST('{{"data":"x"}}' AS BLOB),
            'json', 'history', 'history', 1700000000000000 + i, 86400000000, 60000000, 3, 3, 'retry' FROM number"""
    )
    connection.execute(
        f"""{numbers}
        INSERT INTO perdure_ends (n, organization, lane, state, reason, actor, finished_us, generation, failures,
            losses, fence, attempt_id, due_us, result, result_encoding)
        SELECT 1000 + i, 'default', 1, iif(i % 100, 'succeeded', 'dead_lettered'), iif(i % 100, 'ok', 'exhausted'),
            'worker', 1700000000000000 + i, 1, 0, 0, i, printf('%08x', i), 1700000000000000,
            CAST('null' AS BLOB), 'json'
        FROM number"""
    )
    connection.execute(
        f"""{numbers}
        INSERT INTO perdure_attempts (n, fence, id, generation, number, worker, state, reason, task_state, actor,
            leased_us, ended_us, digest)
        SELECT 1000 + i, i, printf('%08x', i), 1, 1, 'worker', 'succeeded', 'ok', 'succeeded', 'worker',
            1700000000000000, 1700000000000000 + i, '' FROM number"""
    )
    for state, count in (
        ("succeeded", tasks - tasks // 100),
        ("dead_lettered", tasks // 100),
        ("attempts", tasks),
    ):
        connection.execute(
            "INSERT INTO perdure_counts (lane, state, count) VALUES (1, ?, ?) "
            "ON CONFLICT DO UPDATE SET count = count + excluded.count",
            (state, count),
        )
    connection.execute("COMMIT")
    connection.close()


async def views(folder: Path, tasks: int) -> dict[str, float]:
    """Milliseconds of each view, the median of 20, beside that many ended tasks."""
    path = folder / "history.db"
    async with _app(folder, "history") as app:
        await app.submit("noop")
    _fill(path, tasks)
    async with _app(folder, "history") as app:
        looks = (await app.operations()).views
        ended = TaskFilter(states=(TaskState.DEAD_LETTERED,))
        asked: dict[str, Callable[[], Awaitable[Any]]] = {
            "overview": lambda: looks.overview("default"),
            "queues": lambda: looks.queues("default"),
            "newest 50 tasks": lambda: looks.tasks("default", TaskFilter(), 50),
            "newest 50 dead letters": lambda: looks.tasks("default", ended, 50),
            "workers": lambda: looks.workers("default", None),
        }
        return {name: await _median_ms(look) for name, look in asked.items()}


async def _median_ms(look: Callable[[], Awaitable[Any]]) -> float:
    taken = []
    for _ in range(20):
        begin = time.perf_counter()
        await look()
        taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken)


def report(quick: bool) -> list[str]:
    """The lines of the table."""
    sizes = (100, 1_000) if quick else (100, 1_000, 10_000)
    lines = ["| job | size | submit s | run s | run ms a task |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        for what, measure in (("fan-out", fan_out), ("fan-in", fan_in), ("cascade", cascade)):
            for size in sizes:
                submit, run = asyncio.run(measure(folder, size))
                lines.append(f"| {what} | {size:,} | {submit:.3f} | {run:.3f} | {run / size * 1000:.3f} |")
        history = 100_000 if quick else 1_000_000
        lines += ["", f"| view beside {history:,} ended tasks | ms |", "|---|---|"]
        for view, ms in asyncio.run(views(folder, history)).items():
            lines.append(f"| {view} | {ms:.2f} |")
    return lines
