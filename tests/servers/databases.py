"""Databases for tests: each test has a migrated one of its own, and hands it on emptied."""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from conformance import postgres_rows
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import READ_COMMITTED, Address, Connector
from perdure.store.postgres.session import Limits
from perdure.store.postgres.store import Parts
from servers.pooler import Pooler, pooling
from servers.postgres import PostgresServer, running

TEMPLATE = "template_of_tests"
USES_MAX = 40
"""So often a database is emptied before another is made instead: what was deleted is still looked at by its queries."""

_open = contextlib.ExitStack()
"""The server that all tests of this process share."""


@functools.cache
def shared() -> "Databases":
    """The databases of a server that starts when it is first needed and ends with `end_shared`. Raises `NoServer`."""
    databases = Databases(_open.enter_context(running()))
    _open.callback(databases.close)
    return databases


def end_shared() -> None:
    """End the shared server, if there is one."""
    _open.close()
    shared.cache_clear()


class Databases:
    """The databases of one server. Making one costs ten times as much as emptying one."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._names = "test"
        self._spare: list[str] = []
        self._made = 0
        self._uses: dict[str, int] = {}
        self._houses: dict[Path, str] = {}
        self._poolers: dict[int, Pooler] = {}
        self._lookers: dict[str, psycopg.Connection[Any]] = {}
        self._admin = psycopg.connect(server.url("postgres"), autocommit=True)
        self._admin.execute(SQL("CREATE DATABASE {}").format(Identifier(TEMPLATE)))
        migrate(server.url(TEMPLATE))
        with psycopg.connect(server.url(TEMPLATE), autocommit=True) as connection:
            self._tables = tables(connection)
            self._emptying = emptying(connection, self._tables)

    def pooler(self, prepared_max: int = 0) -> Pooler:
        """A pooler before the server that tests of this process share. Raises `NoPooler`."""
        if prepared_max not in self._poolers:
            self._poolers[prepared_max] = _open.enter_context(pooling(self.server, prepared_max=prepared_max))
        return self._poolers[prepared_max]

    def take(self) -> str:
        """The URL of a migrated database without rows, to be handed back by `give_back`."""
        name = self._spare.pop() if self._spare else self.make()
        return self.server.url(name)

    def house(self, folder: Path) -> str:
        """The URL of the database that belongs to a test's folder, taken when it is first asked for."""
        if folder not in self._houses:
            self._houses[folder] = self.take()
        return self._houses[folder]

    def looker(self, folder: Path) -> psycopg.Connection[Any]:
        """A connection to the database of the folder that is kept for whoever looks at its rows."""
        return self._looker(self.house(folder))

    def _looker(self, url: str) -> psycopg.Connection[Any]:
        if url not in self._lookers:
            self._lookers[url] = postgres_rows.connect(url)
        return self._lookers[url]

    def leave(self, folder: Path) -> None:
        """The folder needs its database no more."""
        if folder in self._houses:
            self.give_back(self._houses.pop(folder))

    def make(self, template: str = TEMPLATE) -> str:
        """The name of a new database that is nobody's; with the template `template1` it has no schema."""
        self._made += 1
        name = f"{self._names}_{self._made}"
        query = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._admin.execute(query.format(Identifier(name), Identifier(template)))
        return name

    def give_back(self, url: str) -> None:
        """Empty a database for the next test."""
        name = url.rpartition("/")[2]
        self._uses[name] = self._uses.get(name, 0) + 1
        if self._uses[name] >= USES_MAX:
            self._drop(url, name)
            return
        looker = self._looker(url)
        looker.execute(OTHERS, [name])
        for own in tables(looker) - self._tables:
            looker.execute(SQL("DROP TABLE {} CASCADE").format(Identifier("public", own)))
        looker.execute(self._emptying)
        self._spare.append(name)

    def _drop(self, url: str, name: str) -> None:
        if url in self._lookers:
            self._lookers.pop(url).close()
        self._admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """In a forked child: with connections and databases of its own, which are gone at the end."""
        # Those of the process that forked are kept, for nobody here may close them.
        self._inherited = [self._admin, *self._lookers.values()]
        self._names, self._spare, self._houses, self._lookers = f"test_of_{os.getpid()}", [], {}, {}
        self._admin = psycopg.connect(self.server.url("postgres"), autocommit=True)
        yield
        for name in {*self._spare, *(url.rpartition("/")[2] for url in self._houses.values())}:
            self._drop(self.server.url(name), name)
        self.close()

    def close(self) -> None:
        """Let go of the server."""
        for each in (self._admin, *self._lookers.values()):
            each.close()


OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


def migrate(url: str) -> None:
    """Bring the schema of perdure into an empty database."""
    connector = Connector(Address(url), Limits(10_000, 10_000, 10_000), READ_COMMITTED)
    parts = Parts(connector, StoreClock(None), patience=0)
    parts.prepare(migrate=True)
    parts.first.close()


def tables(connection: psycopg.Connection[Any]) -> set[str]:
    """The names of the tables in a database."""
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    return {name for (name,) in connection.execute(query)}


def emptying(connection: psycopg.Connection[Any], tables: set[str]) -> Composable:
    """The statements that bring a database back to how it was after its migration."""
    deletes = [SQL("DELETE FROM {}").format(Identifier(table)) for table in sorted(tables)]
    starts = SQL("SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence")
    return SQL("; ").join([*deletes, *_first_rows(connection, tables), starts])


def _first_rows(connection: psycopg.Connection[Any], tables: set[str]) -> list[Composable]:
    inserts: list[Composable] = []
    for table in sorted(tables):
        for row in connection.execute(SQL("SELECT * FROM {}").format(Identifier(table))):
            values = SQL(", ").join(row)
            inserts.append(SQL("INSERT INTO {} VALUES ({})").format(Identifier(table), values))
    return inserts
