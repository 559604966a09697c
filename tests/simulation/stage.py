"""Where lives are lived one after the other: a database that is emptied between them, and connections that are kept.

Opening a connection and preparing its statements anew for every simulated process would cost as much as the life does.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from perdure.store.sqlite import opening, store
from perdure.store.sqlite.statements import STATEMENTS

SHARED_MEMORY = Path("/dev/shm")

STATEMENT_CACHE = 2_048
"""A statement leaves the cache after so many others have run on the connection."""

_TABLES = "SELECT name FROM {schema} WHERE type = 'table' ORDER BY name LIKE 'simulated%', name"


class Kept(apsw.Connection):
    """A connection that is laid aside where others are closed: then it is as a new one is, but for its statements."""

    aside: "list[Kept]"
    staging: list[str]

    def close(self, force: bool = False) -> None:
        if self in self.aside:
            return
        self.set_wal_hook(None)
        if self.in_transaction:
            self.execute(STATEMENTS["transaction_rollback"])
        for name in self.staging:
            self.execute(f"DELETE FROM temp.{name}")
        self.aside.append(self)

    def end(self) -> None:
        """Close it for good."""
        super().close(True)


class Rows(NamedTuple):
    """What a table has at the beginning of a life."""

    table: str
    rows: list[tuple[Any, ...]]


class Stage:
    """A folder with the database `path`, for one life at a time."""

    def __init__(self) -> None:
        shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="perdure-simulation-", dir=shared))
        self.path = self.folder / "store.db"
        self._first: list[Rows] = []
        self._aside: list[Kept] = []
        self._made: list[Kept] = []

    @property
    def new(self) -> bool:
        """Whether there is no database yet."""
        return not self.path.exists()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Within, the stores of this stage hand their writing connections on; the database is as it was at first."""
        opened = store.open_writing

        def take(path: str, lock_timeout: float) -> apsw.Connection:
            return self._take(lock_timeout) if Path(path) == self.path else opened(path, lock_timeout)

        self._begin_anew()
        store.open_writing = take  # type: ignore[attr-defined]
        try:
            yield
        finally:
            store.open_writing = opened  # type: ignore[attr-defined]

    def _take(self, lock_timeout: float) -> Kept:
        if self._aside:
            return self._aside.pop()
        connection = Kept(str(self.path), statementcachesize=STATEMENT_CACHE)
        connection.set_busy_timeout(round(lock_timeout * 1000))
        opening._configure_writing(connection, str(self.path))
        connection.aside = self._aside
        connection.staging = _tables(connection, "temp.sqlite_schema")
        self._made.append(connection)
        return connection

    def _begin_anew(self) -> None:
        connection = self._take(5.0)
        tables = _tables(connection, "sqlite_schema")
        if not self._first:
            self._first = [Rows(each, list(connection.execute(f"SELECT * FROM {each}"))) for each in tables]
        with connection:
            # The triggers of the observer note what is deleted in a table that comes last.
            for table in tables:
                connection.execute(f"DELETE FROM {table}")
            for table, rows in self._first:
                for row in rows:
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()

    def close(self) -> None:
        """Let go of everything."""
        for each in self._made:
            each.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _tables(connection: apsw.Connection, schema: str) -> list[str]:
    return [name for (name,) in connection.execute(_TABLES.format(schema=schema))]
