"""Stores that are open with all their threads, and plain connections beside them."""

import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import psycopg

from perdure.store.postgres.store import PostgresStore
from perdure.store.relational.operation import Operation


@contextlib.asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    """A store with its threads, closed at the end."""
    store = await PostgresStore.open(url, **options)
    try:
        yield store
    finally:
        await store.close()


@contextlib.contextmanager
def plain(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of somebody else."""
    with psycopg.connect(url, autocommit=True, application_name="somebody else") as connection:
        yield connection


def one(connection: psycopg.Connection[Any], query: str, *values: Any) -> Any:
    """The one value that a query finds."""
    row = connection.execute(query.encode(), values).fetchone()
    return None if row is None else row[0]


def end_sessions(url: str) -> int:
    """End every session that perdure has with this database, as an administrator or a failing server does."""
    query = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'perdure'
    """
    with plain(url) as connection:
        ended: int = one(connection, query)
        return ended


def channels() -> set[int]:
    """The descriptors of this process that are pipes or sockets."""
    found = set()
    for descriptor in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                found.add(descriptor)
    return found


def operation(apply: Callable[[Any, list[Any]], list[Any]], name: str = "test") -> Operation:
    """Something that a test wants to be done in a transaction of the store."""
    return Operation(name, 0, apply)
