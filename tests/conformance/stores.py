"""The stores that the suite holds to the protocols. A store plugs in with one `Plug`."""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance import sqlite_rows
from migrated import lay
from perdure.domain.limits import SECOND_US
from perdure.store.store import Store
from skipping import skip

Snapshot = dict[str, list[dict[str, Any]]]
"""Every table of a store with all of its rows, in a fixed order."""

START_US = 1_800_000_000 * SECOND_US


class ManualClock:
    """A clock that only a test moves. It meets `perdure.ambient.Clock`."""

    def __init__(self) -> None:
        self.passed_us = 0
        self.boot = "boot-1"

    def advance(self, us: int) -> None:
        """Let that many microseconds pass."""
        self.passed_us += us

    def monotonic_us(self) -> int:
        return 1_000 * SECOND_US + self.passed_us

    def boot_us(self) -> int:
        return 5_000 * SECOND_US + self.passed_us

    def boot_id(self) -> str:
        return self.boot

    def wall_us(self) -> int:
        return START_US + self.passed_us


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """The rows that one snapshot has and the other has not."""
    lines: list[str] = []
    for table in sorted(before.keys() | after.keys()):
        old, new = before.get(table, []), after.get(table, [])
        lines += [f"- {table} {row}" for row in old if row not in new]
        lines += [f"+ {table} {row}" for row in new if row not in old]
    return lines


class Plug(NamedTuple):
    """What the suite needs of one store, beyond the protocols."""

    name: str
    open: Callable[[Path, ManualClock], Awaitable[Store]]
    """A migrated store in this folder. Its time comes from the clock."""
    snapshot: Callable[[Path], Snapshot]
    """The whole database; what only tells the store its time is left out."""
    without_late_results: Callable[[Snapshot], Snapshot]
    """The same without the bounded notes of results that came too late."""
    contradictions: Callable[[Path], Sequence[str]]
    """What in the stored rows contradicts itself: counters, dependencies, orphans, order. Empty when all is well."""
    connect: Callable[[Path], Any] | None
    """A connection of a caller's own, for `store.caller`; `None` without that capability."""
    elsewhere: Callable[[Path], Any] | None
    """The same to another database."""
    begin: str = "BEGIN IMMEDIATE"
    """How a caller begins a transaction that writes."""
    leave: Callable[[Path], None] = lambda folder: None
    """What is done with what lies outside of the folder, once the store is closed."""


async def open_sqlite(folder: Path, clock: ManualClock) -> Store:
    """A SQLite store without threads: what it does is done when the call returns."""
    from perdure.store.sqlite.store import SqliteStore

    path = str(lay(folder / "store.db"))
    store: Store = await SqliteStore.open(path, inline=True, clock=clock, synchronous="OFF")
    return store


POOLER = "PERDURE_TEST_POOLER"
"""Set to `plain`, the suite also holds a store behind PgBouncer to the protocols; to `prepared`, one that prepares."""


async def open_pooled(folder: Path, clock: ManualClock) -> Store:
    """The same behind PgBouncer, where each transaction gets another session."""
    from perdure.store.postgres.store import PostgresStore

    prepared = os.environ[POOLER] == "prepared"
    url, pooler = _databases().house(folder), _databases().pooler(500 if prepared else 0)
    pooler.spread(url)
    prepare = "on" if prepared else "auto"
    store: Store = await PostgresStore.open(pooler.url(url), inline=True, clock=clock, prepare=prepare)
    return store


def open_postgres(isolation: str) -> Callable[[Path, ManualClock], Awaitable[Store]]:
    """A PostgreSQL store without threads, in a database that belongs to the folder."""

    async def open_here(folder: Path, clock: ManualClock) -> Store:
        from perdure.store.postgres.store import PostgresStore

        url = _databases().house(folder)
        store: Store = await PostgresStore.open(url, inline=True, clock=clock, isolation=isolation)
        return store

    return open_here


def _databases() -> Any:
    from servers.databases import shared
    from servers.postgres import NoServer

    try:
        return shared()
    except NoServer as reason:
        skip(str(reason))


def _postgres(name: str, opened: Callable[[Path, ManualClock], Awaitable[Store]]) -> Plug:
    import psycopg

    from conformance import postgres_rows

    return Plug(
        name,
        opened,
        lambda folder: postgres_rows.snapshot(_databases().looker(folder)),
        sqlite_rows.without_late_results,
        lambda folder: postgres_rows.contradictions(_databases().looker(folder)),
        lambda folder: postgres_rows.connect(_databases().house(folder)),
        lambda folder: psycopg.connect(_databases().server.url("postgres"), autocommit=True),
        begin="BEGIN",
        leave=lambda folder: _databases().leave(folder),
    )


async def open_cockroach(folder: Path, clock: ManualClock) -> Store:
    """A store that is spoken to as CockroachDB is, on a PostgreSQL where every eighth commit collides."""
    from conformance import colliding
    from perdure.store.postgres.store import PostgresStore

    colliding.begin()
    url = _databases().house(folder).replace("postgresql:", "cockroachdb:")
    store: Store = await PostgresStore.open(url, inline=True, clock=clock)
    return store


async def open_given(folder: Path, clock: ManualClock) -> Store:
    """The same on a server that is one."""
    from perdure.store.postgres.store import PostgresStore
    from servers.given import given

    store: Store = await PostgresStore.open(given().url, inline=True, clock=clock)
    return store


def _given() -> Plug:
    import psycopg

    from conformance import postgres_rows
    from servers.given import given

    return Plug(
        "cockroachdb-server",
        open_given,
        lambda folder: postgres_rows.snapshot(given().looker),
        sqlite_rows.without_late_results,
        lambda folder: postgres_rows.contradictions(given().looker),
        lambda folder: postgres_rows.connect(given().plain_url),
        lambda folder: psycopg.connect(given().plain_url, dbname="postgres", autocommit=True),
        begin="BEGIN",
        leave=lambda folder: given().empty(),
    )


STORES: dict[str, Plug] = {
    "sqlite": Plug(
        "sqlite",
        open_sqlite,
        lambda folder: sqlite_rows.snapshot(folder / "store.db"),
        sqlite_rows.without_late_results,
        lambda folder: sqlite_rows.contradictions(folder / "store.db"),
        lambda folder: sqlite_rows.connect(folder / "store.db"),
        lambda folder: sqlite_rows.connect(folder / "another.db"),
    ),
    "postgres": _postgres("postgres", open_postgres("read committed")),
    "postgres-serializable": _postgres("postgres-serializable", open_postgres("serializable")),
    "cockroachdb": _postgres("cockroachdb", open_cockroach),
}
if POOLER in os.environ:
    STORES["postgres-pooled"] = _postgres("postgres-pooled", open_pooled)
if "PERDURE_TEST_COCKROACH_URL" in os.environ:
    STORES["cockroachdb-server"] = _given()
