"""A transaction of the caller's own, checked before anything is written through it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from perdure.errors import Misuse, StoreBusy, UnsafeStore
from perdure.store.sqlite.clock import StoreClock
from perdure.store.sqlite.opening import WORKING_TABLES, check_version
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.transaction import Transaction


class CallerConnections:
    """Turns connections of callers into transactions on this store's file."""

    def __init__(self, path: str, clock: StoreClock, own: apsw.Connection | None = None) -> None:
        self._path = path
        self._clock = clock
        self._own = own

    def within(self, connection: Any) -> Transaction:
        """The caller's open transaction at the store's now. Nothing is begun, committed or rolled back here.

        Raises `Misuse` when the connection is no SQLite connection, on another file, or outside a transaction, and
        `UnsafeStore` when writing through it beside this store could corrupt the file.
        """
        if not hasattr(connection, "execute") or not hasattr(connection, "in_transaction"):
            raise Misuse(
                f"expected an apsw.Connection or a sqlite3.Connection, not {type(connection).__name__}",
                given=type(connection).__name__,
            )
        if not isinstance(connection, apsw.Connection):
            _check_library(connection)
        self._check_file(connection)
        if not connection.in_transaction:
            raise Misuse("the connection is outside a transaction: begin one (BEGIN IMMEDIATE) before, commit it after")
        return Transaction(connection, self._clock.now_us())

    @contextmanager
    def working_tables(self, connection: Any) -> Iterator[None]:
        """The working tables on a caller's connection, no longer than need be: they hide tables of its own."""
        if connection is self._own:
            yield
            return
        lines = [line for line in WORKING_TABLES.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
        statements = [each.strip() for each in "\n".join(lines).split(";") if each.strip()]
        for statement in statements:
            connection.execute(statement)
        try:
            yield
        finally:
            for statement in statements:
                name = statement.partition("(")[0].split()[-1]
                connection.execute(STATEMENTS["caller_drop"].replace("settling", name))

    def _check_file(self, connection: Any) -> None:
        if connection is self._own:
            return
        rows = connection.execute(STATEMENTS["caller_databases"]).fetchall()
        theirs = rows[0][0] if rows else ""
        if theirs and os.path.exists(theirs) and os.path.exists(self._path) and os.path.samefile(theirs, self._path):
            return
        raise Misuse(
            f"the connection is on {theirs or 'a database without a file'}, the store on {self._path}: "
            "open the connection on the store's file",
            theirs=theirs,
            path=self._path,
        )


@contextmanager
def writing() -> Iterator[None]:
    """What the caller's transaction writes. Raises `StoreBusy` where it may not write any more: one that began without
    the write lock cannot have it once another has written behind what it has read, however long it waits.
    """
    try:
        yield
    except (apsw.BusyError, apsw.LockedError, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" not in str(error):
            raise
        raise StoreBusy(
            "this transaction cannot write: another holds the lock, or has written since this one read. Roll it back, "
            "and begin it with BEGIN IMMEDIATE, which takes the lock before anything is read",
            cause=str(error),
        ) from error


def _check_library(connection: Any) -> None:
    """Refuse a second copy of SQLite on the file.

    Locks of POSIX belong to a process: two copies of the library within one do not see each other's, so both would
    hold the write lock at once (tried: they do), and one that closes the file drops the other's locks.
    """
    (version,) = connection.execute(STATEMENTS["caller_version"]).fetchone()
    if apsw.using_amalgamation:
        raise UnsafeStore(
            "this connection comes from another copy of SQLite than perdure's in the same process, and the two do not "
            "see each other's locks: connect with `apsw.Connection(path)` instead of `sqlite3.connect(path)`",
            version=version,
        )
    check_version(version)
