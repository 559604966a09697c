"""Connections of callers: which are taken, and why the others are not."""

import sqlite3
from pathlib import Path

import apsw
import pytest

from backends.sqlite.fixed_clock import FixedClock
from backends.sqlite.notes import make_table, read_notes
from perdure.errors import Misuse, UnsafeStore
from perdure.store.sqlite.caller_connection import CallerConnections
from perdure.store.sqlite.clock import StoreClock
from perdure.store.sqlite.store import SqliteStore


@pytest.fixture
def callers(store: SqliteStore) -> CallerConnections:
    return CallerConnections(store.path, StoreClock(FixedClock(), 17, 0))


@pytest.fixture
def own(store: SqliteStore):
    """A caller's connection, inside a transaction."""
    connection = apsw.Connection(store.path)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close(True)


async def test_what_is_written_within_exists_exactly_if_the_caller_commits(
    store: SqliteStore, callers: CallerConnections, own: apsw.Connection
):
    for ending, expected in (("ROLLBACK", []), ("COMMIT", ["mine"])):
        if not own.in_transaction:
            own.execute("BEGIN IMMEDIATE")
        tx = callers.within(own)
        tx.connection.execute("INSERT INTO notes (flush, text) VALUES (0, 'mine')")
        own.execute(ending)
        assert await read_notes(store) == expected


async def test_the_instant_is_the_stores(callers: CallerConnections, own: apsw.Connection):
    assert callers.within(own).now_us == FixedClock().boot_us() + 17


async def test_outside_a_transaction_is_a_misuse(callers: CallerConnections, own: apsw.Connection):
    own.execute("COMMIT")
    with pytest.raises(Misuse, match="BEGIN IMMEDIATE"):
        callers.within(own)


async def test_another_file_is_a_misuse(callers: CallerConnections, tmp_path: Path):
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Misuse, match="on the store's file"):
        callers.within(other)
    other.close(True)


async def test_a_database_in_memory_is_a_misuse(callers: CallerConnections):
    other = apsw.Connection(":memory:")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Misuse, match="without a file"):
        callers.within(other)


async def test_a_link_to_the_stores_file_is_the_stores_file(
    store: SqliteStore, callers: CallerConnections, tmp_path: Path
):
    link = tmp_path / "link.db"
    link.symlink_to(store.path)
    connection = apsw.Connection(str(link))
    connection.execute("BEGIN IMMEDIATE")
    assert callers.within(connection).connection is connection
    connection.close(True)


async def test_what_is_no_connection_is_a_misuse(callers: CallerConnections):
    with pytest.raises(Misuse, match="not str"):
        callers.within("perdure.db")


async def test_a_second_copy_of_sqlite_in_the_process_is_unsafe(store: SqliteStore, callers: CallerConnections):
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute("BEGIN")
    with pytest.raises(UnsafeStore, match=r"apsw\.Connection\(path\)"):
        callers.within(connection)
    connection.close()


def test_two_copies_of_sqlite_do_not_see_each_others_locks(tmp_path: Path):
    """Why they are refused. When this fails, the rule can go."""
    path = str(tmp_path / "plain.db")
    ours, theirs = apsw.Connection(path), sqlite3.connect(path, isolation_level=None)
    ours.pragma("journal_mode", "wal")
    ours.execute("BEGIN IMMEDIATE")
    if apsw.using_amalgamation:
        theirs.execute("BEGIN IMMEDIATE")
        assert theirs.in_transaction
    theirs.close()
    ours.close(True)


async def test_the_one_connection_of_a_database_in_memory_may_be_the_callers():
    store = await SqliteStore.open(":memory:", inline=True)
    await make_table(store)
    own = store.writer.commits.connected()
    callers = CallerConnections(store.path, StoreClock(FixedClock(), 0, 0), own)
    own.execute("BEGIN IMMEDIATE")
    assert callers.within(own).connection is own
    own.execute("ROLLBACK")
    await store.close()
