"""What a case stands on: the address of a store, and how its rows are looked at from outside."""

import contextlib
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from conformance import sqlite_rows

STORES = ("sqlite", "postgres")


class Ground(Protocol):
    """One store of one case."""

    name: str

    @property
    def store(self) -> str:
        """What `App` and the command line take."""

    def contradictions(self) -> list[str]:
        """What in the rows contradicts itself."""

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """Every table with all of its rows."""


class SqliteGround:
    """A file in the case's folder."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "perdure.db"
        self.store = str(self.path)

    def contradictions(self) -> list[str]:
        return sqlite_rows.contradictions(self.path)

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        return sqlite_rows.snapshot(self.path)


class PostgresGround:
    """A database of a server that is this case's alone, durable, to be restarted and starved as one likes."""

    name = "postgres"

    def __init__(self, server: Any) -> None:
        self.server = server
        self.store = server.url("postgres")

    def contradictions(self) -> list[str]:
        from conformance import postgres_rows

        return postgres_rows.contradictions(self.store)

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        from conformance import postgres_rows

        with postgres_rows.connect(self.store) as connection:
            return postgres_rows.snapshot(connection)

    def crash(self) -> None:
        """End the server at once, as if it had been killed, and start it again."""
        self.server.stop(signal.SIGQUIT)
        self.server.start()


DURABLE = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on"}


@contextlib.contextmanager
def ground(name: str, folder: Path, settings: Mapping[str, str]) -> Iterator[Ground]:
    """The ground of one case. `settings` are those of a PostgreSQL server. Raises `NoServer`."""
    if name == "sqlite":
        yield SqliteGround(folder)
        return
    from servers.postgres import running

    with running(**{**DURABLE, **settings}) as server:
        yield PostgresGround(server)
