"""Steady load with retention on: what the store holds and what a claim takes must become level.

    python -m bench.steady [--store postgres | URL] [--tasks 200000] [--keep 3] [--write]

Tasks are submitted as fast as a worker beside runs them; what has ended is removed after `--keep` seconds. Each line is
one twentieth of the load, told as it comes. Writes results/steady-<store>.md with plots in characters, and STEADY.md,
which is kept, if asked to. `--store postgres` is a server made for the run; a URL one of your own.
"""

import argparse
import asyncio
import contextlib
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import perdure

RESULTS = Path(__file__).parent / "results"
KEPT = Path(__file__).parent / "STEADY.md"
STRETCHES = 20
BATCH = 500
BACKLOG = 2_000
"""No more tasks than this wait for the worker."""
MEASURES = ("store_mib", "aside", "rss_mib", "claim_p99_ms")
MIB = 1024 * 1024
SIZES = """
    SELECT sum(pg_total_relation_size(relid)), sum(n_dead_tup) FROM pg_stat_user_tables WHERE relname LIKE 'perdure_%'
"""


class Point(NamedTuple):
    """The store after one stretch of the load."""

    tasks: int
    rate: float
    held: int
    store_mib: float
    aside: float
    """MiB of write-ahead log on SQLite, dead rows on PostgreSQL."""
    rss_mib: float
    claim_p99_ms: float


async def load(store: str, tasks: int, keep: float, sizes: Callable[[], Awaitable[tuple[float, float]]]) -> list[Point]:
    """Run the load, and look at the store after each stretch of it."""
    settings = perdure.Settings.load().but(store=store, retention=keep)
    app = perdure.App(settings=settings)
    ran = 0

    @app.task("noop")
    async def noop(data: str) -> None:
        nonlocal ran
        ran += 1

    points: list[Point] = []
    async with app:
        system = await app.system()
        taken = _time_claims(system.engine)
        async with app.worker(concurrency=100):
            submitted = 0
            for _ in range(STRETCHES):
                begin = time.perf_counter()
                until = submitted + tasks // STRETCHES
                while submitted < until:
                    while submitted - ran > BACKLOG:
                        await asyncio.sleep(0.005)
                    await app.submit_many([noop.call(data="x" * 50) for _ in range(BATCH)])
                    submitted += BATCH
                seconds = time.perf_counter() - begin
                points.append(await _point(system.engine, submitted, tasks // STRETCHES / seconds, taken, sizes))
                print(points[-1], flush=True)
                taken.clear()
    return points


async def _point(engine: Any, submitted: int, rate: float, taken: list[float], sizes: Any) -> Point:
    held = sum(row.tasks for row in (await engine.views.overview("default")).counts)
    store_mib, aside = await sizes()
    taken.sort()
    p99 = taken[int(len(taken) * 0.99)] * 1000 if taken else 0.0
    # The present size, not the highest: what was given back counts as given back.
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Point(submitted, rate, held, store_mib, aside, pages * resource.getpagesize() / MIB, p99)


def _time_claims(engine: Any) -> list[float]:
    taken: list[float] = []
    claim = engine.claim

    async def timed(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return await claim(*args, **kwargs)
        finally:
            taken.append(time.perf_counter() - begin)

    engine.claim = timed
    return taken


def sqlite_sizes(path: Path) -> Callable[[], Awaitable[tuple[float, float]]]:
    """MiB of pages in use, and of the log."""

    async def sizes() -> tuple[float, float]:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            pages, free, size = (connection.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        finally:
            connection.close()
        log = path.with_name(path.name + "-wal")
        return (pages - free) * size / MIB, log.stat().st_size / MIB if log.exists() else 0.0

    return sizes


def postgres_sizes(url: str) -> Callable[[], Awaitable[tuple[float, float]]]:
    """MiB of tables and indexes, and dead rows."""

    async def sizes() -> tuple[float, float]:
        import psycopg

        async with await psycopg.AsyncConnection.connect(url) as connection:
            row = await (await connection.execute(SIZES)).fetchone()
        assert row is not None
        return float(row[0] or 0) / MIB, float(row[1] or 0)

    return sizes


def table(points: list[Point], aside: str) -> list[str]:
    """The points, and how the second half stands to the first."""
    lines = [
        f"| tasks | tasks/s | kept | store MiB | {aside} | worker RSS MiB | claim p99 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.tasks:,} | {each.rate:,.0f} | {each.held:,} | {each.store_mib:.1f} | {each.aside:,.1f} "
        f"| {each.rss_mib:.1f} | {each.claim_p99_ms:.2f} |"
        for each in points
    ]
    for name in MEASURES:
        lines += plot(points, name)
    half = len(points) // 2
    lines += ["", "Highest of the last quarter against the highest of the second quarter:"]
    for name in MEASURES:
        early = max(getattr(each, name) for each in points[half // 2 : half])
        late = max(getattr(each, name) for each in points[half + half // 2 :])
        lines.append(f"- {name}: {late / early if early else 1.0:.2f}")
    return lines


def plot(points: list[Point], name: str) -> list[str]:
    """A measure after each stretch of the load, as bars."""
    highest = max(getattr(each, name) for each in points) or 1.0
    bars = [f"{each.tasks:>10,} {'#' * round(60 * getattr(each, name) / highest)}" for each in points]
    return ["", "```", f"{name}, up to {highest:,.1f}", *bars, "```"]


@contextlib.contextmanager
def own_server() -> Iterator[str]:
    """The URL of a database on a durable server that is this run's."""
    from bench.servers import postgres

    with postgres() as server:
        yield server.fresh("steady")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.steady", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--store", default="", help="postgres for a server of its own, or a URL; a SQLite file of its own without"
    )
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--keep", type=float, default=3.0, help="seconds that what has ended is kept")
    parser.add_argument("--write", action="store_true", help="write STEADY.md, too")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perdure-steady-"))) / "steady.db"
        url = stack.enter_context(own_server()) if options.store == "postgres" else options.store
        sizes = postgres_sizes(url) if url else sqlite_sizes(path)
        points = asyncio.run(load(url or str(path), options.tasks, options.keep, sizes))
    name = "postgres" if options.store else "sqlite"
    lines = [f"# Steady load on {name}: {options.tasks:,} tasks, kept for {options.keep:g} s", ""]
    lines += table(points, "dead rows" if options.store else "log MiB")
    RESULTS.mkdir(exist_ok=True)
    for report in [RESULTS / f"steady-{name}.md", *([KEPT] if options.write else [])]:
        report.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
