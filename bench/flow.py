"""Limits, fair share and ageing: what they cost beside the same work without any.

Claims with many keys waiting at their limits beside plain claims; drains without limits, with one on every key, with
one of the queue, and with keys that take turns; and what a flood costs the single task of another.
"""

import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.servers import Postgres
from perdure.ambient import Ids, SystemClock
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort
from perdure.domain.settlement import Settlement
from perdure.domain.task import Body, Rare, Task, Terms
from perdure.store.ledger import ClaimRequest, Guard, Settling, WorkerInfo
from perdure.store.postgres.store import PostgresStore
from perdure.store.sqlite.store import SqliteStore
from perdure.store.store import Store

KEYS, DRAINED, CLAIMS = 100_000, 20_000, 1_000
SUBMITTED_AT_ONCE = 2_000
HELD_AT_ONCE = 20
FLOOD_KEYS = 1_000
TASKS_OF_A_KEY = 10
TARGETS = {
    # ratio: (numerator, denominator, at most)
    "claim p99, keys at limits / plain": ("claim p99 ms, keys at limits", "claim p99 ms, plain", 2.0),
    "drain, plain / limit on every key": ("drain, plain", "drain, limit on every key", 1.11),
}

Options = Callable[[int], str | None]
Opening = Callable[[str], Awaitable[Store]]
"""Opens a new store under a name, which commits on the caller's thread."""


class Site(NamedTuple):
    """A store with one worker."""

    store: Store
    ids: Ids

    def task(self, organization: str, options: str | None) -> Task:
        """A small task."""
        terms = Terms(
            organization=organization, kind="work", queue="default", priority=limits.PRIORITY_DEFAULT, capabilities=(),
            encoding="json", principal="bench", initiator="bench", ttl_us=None,
            execution_limit_us=limits.EXECUTION_LIMIT_DEFAULT_US, timeout_us=None, lease_us=limits.LEASE_DEFAULT_US,
            max_attempts=1, max_losses=1, on_loss="retry", trigger="all_succeeded", if_failed="fail", retry=None,
        )  # fmt: skip
        return Task(self.ids.new(), '{"n":1}', terms, Rare(options=options))

    async def submit(self, count: int, options: Options, organization: str = "a") -> list[str]:
        """Submit that many tasks."""
        ids = []
        for start in range(0, count, SUBMITTED_AT_ONCE):
            places = range(start, min(count, start + SUBMITTED_AT_ONCE))
            tasks = [self.task(organization, options(n)) for n in places]
            await self.store.ledger.submit(tasks)
            ids += [task.id for task in tasks]
        return ids

    async def claim(self, count: int) -> list[Lease]:
        """Claim at most that many."""
        leases = list(zip(self.ids.some(count), self.ids.tokens(count), strict=True))
        return await self.store.ledger.claim(ClaimRequest("w", leases, limits.PRIORITY_AGEING_DEFAULT_US))

    async def end(self, leases: Sequence[Lease]) -> None:
        """All of them succeed."""
        done = Settlement.succeeded(Body(b"1"), None)
        await self.store.ledger.settle(
            [Settling(each.hold, Guard.HOLDER, done, each.hold.attempt_id[-12:]) for each in leases]
        )


async def _site(open_store: Opening, name: str) -> Site:
    store = await open_store(name)
    await store.ledger.register(
        WorkerInfo(
            id="w",
            name="w",
            host="h",
            pid=1,
            version="1",
            build="",
            kinds=("work",),
            queues=("default",),
            organizations=(),
            capabilities=(),
            capacity=1_000_000,
        )
    )
    clock = SystemClock()
    return Site(store, Ids(clock, random.Random(1).getrandbits))


def _plain(n: int) -> None:
    return None


def _limited(keys: int) -> Options:
    return lambda n: _options(Gate(GateSort.CONCURRENCY, "work by customer", str(n % keys), 1))


def _fair(keys: int) -> Options:
    return lambda n: _options(Gate(GateSort.FAIR, "work by customer (default, 4)", str(n % keys), 1))


def _options(gate: Gate) -> str:
    return msgspec.json.encode({"gates": [gate]}).decode()


async def _claims(open_store: Opening, name: str, tasks: int, options: Options, claims: int) -> float:
    """The 99th percentile of the time that a claim of one task takes, in milliseconds; each task ends at once."""
    site = await _site(open_store, name)
    await site.submit(tasks, options)
    taken = []
    for _ in range(claims):
        began = time.perf_counter()
        leases = await site.claim(1)
        taken.append(time.perf_counter() - began)
        await site.end(leases)
    await site.store.close()
    return statistics.quantiles(taken, n=100)[98] * 1_000


class _Drain:
    """A drain of a store of its own, and the time that it has taken."""

    def __init__(self, site: Site, tasks: int) -> None:
        self._site = site
        self.left = tasks
        self.taken = 0.0

    async def step(self) -> None:
        """Claim some, and end them."""
        began = time.perf_counter()
        leases = await self._site.claim(HELD_AT_ONCE)
        await self._site.end(leases)
        self.taken += time.perf_counter() - began
        self.left -= len(leases)

    async def close(self) -> None:
        await self._site.store.close()


async def _drains(open_store: Opening, tasks: int) -> dict[str, float]:
    """Tasks a second, by how they are limited. All of them go on step by step side by side, so that they have the same
    machine.
    """
    wanted: dict[str, tuple[Options, dict[str, Any]]] = {
        "plain": (_plain, {}),
        "limit on every key": (_limited(tasks), {}),
        "keys at limits": (_limited(tasks // TASKS_OF_A_KEY), {}),
        "limit of the queue": (_plain, {"concurrency": 10 * HELD_AT_ONCE}),
        "keys that take turns": (_fair(FLOOD_KEYS), {}),
    }
    drains = {}
    for name, (options, document) in wanted.items():
        site = await _site(open_store, name.replace(" ", "_"))
        if document:
            await site.store.definitions.put("a", "queue", "default", json.dumps(document), "bench")
        await site.submit(tasks, options)
        drains[name] = _Drain(site, tasks)
    while going := [each for each in drains.values() if each.left]:
        for each in going:
            await each.step()
    for each in drains.values():
        await each.close()
    return {f"drain, {name}": tasks / each.taken for name, each in drains.items()}


async def _flood(open_store: Opening, tasks: int) -> dict[str, int]:
    """How many tasks start before the single one of another organization, and of another key of the same."""
    site = await _site(open_store, "flood")
    await site.submit(tasks, _fair(FLOOD_KEYS))
    await site.end(await site.claim(HELD_AT_ONCE))
    (other,) = await site.submit(1, _plain, "b")
    (key,) = await site.submit(1, lambda n: _options(Gate(GateSort.FAIR, "work by customer (default, 4)", "late", 1)))
    before: dict[str, int] = {}
    started = 0
    while len(before) < 2:
        for lease in await site.claim(HELD_AT_ONCE):
            if lease.hold.task_id in (other, key):
                before["organization" if lease.hold.task_id == other else "key"] = started
            started += 1
    await site.store.close()
    return before


async def measure(open_store: Opening, *, quick: bool) -> dict[str, float]:
    """All figures of one round."""
    keys, drained, claims = (5_000, 2_000, 200) if quick else (KEYS, DRAINED, CLAIMS)
    figures = {
        "claim p99 ms, plain": await _claims(open_store, "plain", 2 * keys, _plain, claims),
        "claim p99 ms, keys at limits": await _claims(open_store, "limits", 2 * keys, _limited(keys), claims),
    }
    figures |= await _drains(open_store, drained)
    before = await _flood(open_store, keys)
    figures["starts before another organization's task"] = before["organization"]
    figures["starts before another key's task"] = before["key"]
    return figures


def report_sqlite(folder: Path, *, quick: bool) -> list[str]:
    """The lines of the report, on files."""
    return _report(lambda name: SqliteStore.open(folder / f"{name}.db", inline=True, synchronous="NORMAL"), quick=quick)


def report_postgres(server: Postgres, *, quick: bool) -> list[str]:
    """The lines of the report, on databases of a server."""
    return _report(lambda name: PostgresStore.open(server.fresh(name), inline=True), quick=quick)


def _report(open_store: Opening, *, quick: bool) -> list[str]:
    figures = asyncio.run(measure(open_store, quick=quick))
    lines = ["| figure | |", "|---|---|", *(f"| {name} | {value:,.2f} |" for name, value in figures.items())]
    lines += ["", "| ratio | | at most |", "|---|---|---|"]
    for name, (above, below, most) in TARGETS.items():
        lines.append(f"| {name} | {figures[above] / figures[below]:.2f} | {most:g} |")
    return lines
