"""Limits, fair share and ageing: what they cost beside the same work without any.

Claims with many keys waiting at their limits beside plain claims; drains without limits, with one on every key, with
one of the queue, and with keys that take turns; and what a flood costs the single task of another.
"""

import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from perdure.ambient import Ids, SystemClock
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort
from perdure.domain.settlement import Settlement
from perdure.domain.task import Body, Rare, Task, Terms
from perdure.store.ledger import ClaimRequest, Guard, Settling, WorkerInfo
from perdure.store.sqlite.store import SqliteStore

KEYS, DRAINED, CLAIMS = 100_000, 20_000, 1_000
SUBMITTED_AT_ONCE = 2_000
HELD_AT_ONCE = 20
FLOOD_KEYS = 1_000
TARGETS = {
    # ratio: (numerator, denominator, at most)
    "claim p99, keys at limits / plain": ("claim p99 ms, keys at limits", "claim p99 ms, plain", 2.0),
    "drain, plain / limit on every key": ("drain, plain", "drain, limit on every key", 1.11),
}

Options = Callable[[int], str | None]


class Site(NamedTuple):
    """A store with one worker."""

    store: SqliteStore
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


async def _site(folder: Path, name: str) -> Site:
    store = await SqliteStore.open(str(folder / f"{name}.db"), inline=True, synchronous="NORMAL")
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


async def _claims(folder: Path, name: str, tasks: int, options: Options, claims: int) -> float:
    """The 99th percentile of the time that a claim of one task takes, in milliseconds; each task ends at once."""
    site = await _site(folder, name)
    await site.submit(tasks, options)
    taken = []
    for _ in range(claims):
        began = time.perf_counter()
        leases = await site.claim(1)
        taken.append(time.perf_counter() - began)
        await site.end(leases)
    await site.store.close()
    return statistics.quantiles(taken, n=100)[98] * 1_000


async def _drain(folder: Path, name: str, tasks: int, options: Options, **document: Any) -> float:
    """Tasks a second from the first claim to the last end."""
    site = await _site(folder, name)
    if document:
        await site.store.definitions.put("a", "queue", "default", json.dumps(document), "bench")
    await site.submit(tasks, options)
    began, left = time.perf_counter(), tasks
    while left:
        leases = await site.claim(HELD_AT_ONCE)
        await site.end(leases)
        left -= len(leases)
    taken = time.perf_counter() - began
    await site.store.close()
    return tasks / taken


async def _flood(folder: Path, tasks: int) -> dict[str, int]:
    """How many tasks start before the single one of another organization, and of another key of the same."""
    site = await _site(folder, "flood")
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


async def measure(folder: Path, *, quick: bool) -> dict[str, float]:
    """All figures of one round."""
    keys, drained, claims = (5_000, 2_000, 200) if quick else (KEYS, DRAINED, CLAIMS)
    figures = {
        "claim p99 ms, plain": await _claims(folder, "plain", 2 * keys, _plain, claims),
        "claim p99 ms, keys at limits": await _claims(folder, "limits", 2 * keys, _limited(keys), claims),
        "drain, plain": await _drain(folder, "drain", drained, _plain),
        "drain, limit on every key": await _drain(folder, "keys", drained, _limited(drained)),
        "drain, limit of the queue": await _drain(folder, "queue", drained, _plain, concurrency=10 * HELD_AT_ONCE),
        "drain, keys that take turns": await _drain(folder, "turns", drained, _fair(FLOOD_KEYS)),
    }
    before = await _flood(folder, keys)
    figures["starts before another organization's task"] = before["organization"]
    figures["starts before another key's task"] = before["key"]
    return figures


def report(folder: Path, *, quick: bool) -> list[str]:
    """The lines of the report."""
    figures = asyncio.run(measure(folder, quick=quick))
    lines = ["| figure | |", "|---|---|", *(f"| {name} | {value:,.2f} |" for name, value in figures.items())]
    lines += ["", "| ratio | | at most |", "|---|---|---|"]
    for name, (above, below, most) in TARGETS.items():
        lines.append(f"| {name} | {figures[above] / figures[below]:.2f} | {most:g} |")
    return lines
