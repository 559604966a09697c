"""Databases for tests: each test has a migrated one of its own, and hands it on emptied."""

from importlib.resources import files
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from servers.postgres import PostgresServer

TEMPLATE = "template_of_tests"


class Databases:
    """The databases of one server. Making one costs ten times as much as emptying one."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._spare: list[str] = []
        self._made = 0
        self._admin = psycopg.connect(server.url("postgres"), autocommit=True)
        self._admin.execute(SQL("CREATE DATABASE {}").format(Identifier(TEMPLATE)))
        with psycopg.connect(server.url(TEMPLATE), autocommit=True) as connection:
            migrate(connection)
            self._tables = _tables(connection)
            self._emptying = _emptying(connection, self._tables)

    def take(self) -> str:
        """The URL of a migrated database without rows, to be handed back by `give_back`."""
        name = self._spare.pop() if self._spare else self.make()
        return self.server.url(name)

    def make(self, template: str = TEMPLATE) -> str:
        """The name of a new database that is nobody's; with the template `template1` it has no schema."""
        self._made += 1
        name = f"test_{self._made}"
        query = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._admin.execute(query.format(Identifier(name), Identifier(template)))
        return name

    def give_back(self, url: str) -> None:
        """Empty a database for the next test."""
        name = url.rpartition("/")[2]
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        with psycopg.connect(url, autocommit=True) as connection:
            for own in _tables(connection) - self._tables:
                connection.execute(SQL("DROP TABLE {} CASCADE").format(Identifier(own)))
            connection.execute(self._emptying)
        self._spare.append(name)

    def close(self) -> None:
        """Let go of the server."""
        self._admin.close()


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Bring the schema of perdure into an empty database."""
    folder = files("perdure.store.postgres") / "migrations"
    for step in sorted(folder.iterdir(), key=lambda entry: entry.name):
        connection.execute(step.read_bytes())


def _tables(connection: psycopg.Connection[Any]) -> set[str]:
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    return {name for (name,) in connection.execute(query)}


def _emptying(connection: psycopg.Connection[Any], tables: set[str]) -> Composable:
    """The statements that bring a database back to how it was after its migration."""
    query = "SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
    sequences = [name for (name,) in connection.execute(query)]
    deletes = [SQL("DELETE FROM {}").format(Identifier(table)) for table in sorted(tables)]
    restarts = [SQL("ALTER SEQUENCE {} RESTART").format(Identifier(sequence)) for sequence in sequences]
    return SQL("; ").join([*deletes, *_first_rows(connection, tables), *restarts])


def _first_rows(connection: psycopg.Connection[Any], tables: set[str]) -> list[Composable]:
    inserts: list[Composable] = []
    for table in sorted(tables):
        for row in connection.execute(SQL("SELECT * FROM {}").format(Identifier(table))):
            values = SQL(", ").join(row)
            inserts.append(SQL("INSERT INTO {} VALUES ({})").format(Identifier(table), values))
    return inserts
