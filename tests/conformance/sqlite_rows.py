"""Reads the rows of a SQLite store: all of them for comparing, and those that contradict each other."""

from pathlib import Path
from typing import Any

import apsw

from conformance.contradictions import CHECKS, OWNERS

TIME_KEYS = ("last_us", "offset", "boot")
"""Rows of `meta` that begin so tell the store its time; they may move by themselves."""


def connect(path: Path) -> apsw.Connection:
    """A connection of one's own to the file."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    return connection


PREFIX = "perdure_"
"""Before the name of every table of the store; what is without it is a user's own."""


def tables(connection: apsw.Connection) -> list[str]:
    """The names of all tables."""
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in connection.execute(query)]


def snapshot(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table with all of its rows, sorted."""
    connection = connect(path)
    try:
        connection.execute("BEGIN")
        return {table.removeprefix(PREFIX): _rows(connection, table) for table in tables(connection)}
    finally:
        connection.close()


def _rows(connection: apsw.Connection, table: str) -> list[dict[str, Any]]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})")]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}")
        if not _moves_by_itself(table, row)
    ]
    return sorted(rows, key=repr)


def _moves_by_itself(table: str, row: tuple[Any, ...]) -> bool:
    """The store's notes of its time, and the number of the last place taken in line: a place may be left empty."""
    name = table.removeprefix(PREFIX)
    return (name == "meta" and str(row[0]).startswith(TIME_KEYS)) or (name == "counts" and row[0] == 0)


def without_late_results(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The snapshot without the notes of results that came too late."""
    kept = [row for row in tables["events"] if row["type"] != "late_result"]
    return {**tables, "events": kept}


def contradictions(path: Path) -> list[str]:
    """One line for each fact that the rows do not agree on."""
    connection = connect(path)
    try:
        for table in tables(connection):
            if table.startswith(PREFIX):
                connection.execute(f"CREATE TEMP VIEW {table.removeprefix(PREFIX)} AS SELECT * FROM {table}")
        connection.execute("BEGIN")
        found = [f"{fact}: {row}" for fact, query in CHECKS.items() for row in connection.execute(query)]
        return found + _orphans(connection)
    finally:
        connection.close()


def _orphans(connection: apsw.Connection) -> list[str]:
    found: list[str] = []
    for table in (name for name in tables(connection) if name.startswith(PREFIX)):
        columns = {row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})")}
        for column, owners in OWNERS:
            if column not in columns or (table, column) == (f"{PREFIX}tasks", "n"):
                continue
            key = "j" if owners == "jobs" else "n"
            query = (
                f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL "
                f"AND {column} NOT IN (SELECT {key} FROM {PREFIX}{owners})"
            )
            found += [
                f"a row of {table} belongs to a {owners[:-1]} that is gone: {row}" for row in connection.execute(query)
            ]
    return found
