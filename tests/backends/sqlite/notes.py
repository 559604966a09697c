"""A table of notes, and operations on it: what tests of the writer write instead of tasks."""

from typing import Any

from perdure.errors import Conflict
from perdure.store.relational.operation import Operation
from perdure.store.relational.transaction import batch
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic

TABLE = "CREATE TABLE IF NOT EXISTS notes (n INTEGER PRIMARY KEY, flush INTEGER, text TEXT CHECK (text <> 'bad'))"
ADD = "INSERT INTO notes (flush, text) SELECT ?, value FROM json_each(?)"
READ = "SELECT text FROM notes ORDER BY n"
FLUSHES = "SELECT count(DISTINCT flush) FROM notes"


def add(tx: Transaction, items: list[Any]) -> list[Any]:
    """Write all notes in one statement. A note "bad" breaks a CHECK, "refused" is refused."""
    if "refused" in items:
        raise Conflict("a note that must not be", id="refused")
    tx.connection.execute(ADD, (tx.now_us, batch(items)))
    tx.announce(Topic.READY)
    return [f"noted {item}" for item in items]


ADDING = Operation("add_note", 5, add)


async def make_table(store: SqliteStore) -> None:
    """The table of notes."""

    def make(tx: Transaction, items: list[Any]) -> list[Any]:
        tx.connection.execute(TABLE)
        return [None for _ in items]

    await store.writer.gather(Operation("make_notes", 0, make), [None])


async def read_notes(store: SqliteStore) -> list[str]:
    """All notes in the order in which they were written."""
    return await store.readers.read(lambda tx: [text for (text,) in tx.connection.execute(READ)])


async def count_flushes(store: SqliteStore) -> int:
    """In how many transactions the notes were written (each has its own instant)."""
    return await store.readers.read(lambda tx: next(iter(tx.connection.execute(FLUSHES)))[0])
