"""The limit: what SQLite itself does on this machine, with a minimal table, no fence and no history."""

import time
from pathlib import Path

import apsw

SCHEMA = """
CREATE TABLE queue (
    id INTEGER PRIMARY KEY, state INTEGER NOT NULL DEFAULT 0, payload BLOB NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0, lease REAL
);
CREATE INDEX ready ON queue (id) WHERE state = 0;
"""


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for pragma in ("journal_mode = wal", "synchronous = full"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute(SCHEMA)
    return connection


def insert(folder: Path, tasks: int, batch: int, payload: bytes) -> float:
    """Rows a second, `batch` in each durable transaction."""
    connection = _open(folder / f"raw-insert-{batch}.db")
    start = time.perf_counter()
    for _ in range(tasks // batch):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO queue (payload) VALUES (?)", [(payload,)] * batch)
        connection.execute("COMMIT")
    rate = tasks / (time.perf_counter() - start)
    connection.close()
    return rate


def drain(folder: Path, tasks: int, batch: int, payload: bytes) -> float:
    """Rows claimed and completed a second, in two durable transactions for each batch."""
    connection = _open(folder / f"raw-drain-{batch}.db")
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO queue (payload) VALUES (?)", [(payload,)] * tasks)
    connection.execute("COMMIT")
    claim = (
        "UPDATE queue SET state = 1, attempt = attempt + 1, lease = unixepoch() + 30 "
        "WHERE id IN (SELECT id FROM queue WHERE state = 0 ORDER BY id LIMIT ?) RETURNING id, payload"
    )
    start = time.perf_counter()
    for _ in range(tasks // batch):
        connection.execute("BEGIN IMMEDIATE")
        claimed = [(row[0],) for row in connection.execute(claim, (batch,)).fetchall()]
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("UPDATE queue SET state = 2 WHERE id = ? AND state = 1", claimed)
        connection.execute("COMMIT")
    rate = tasks / (time.perf_counter() - start)
    connection.close()
    return rate
