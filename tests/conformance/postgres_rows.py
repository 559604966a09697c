"""Reads the rows of a PostgreSQL store: all of them for comparing, and those that contradict each other.

What the store keeps for itself is left out or summed up: which rows say so is the store's own affair, what they say in
sum is not.
"""

import functools
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from conformance.contradictions import CHECKS, OWNERS

PREFIX = "perdure_"
PLAIN = "plain"
"""A schema of views by the names that the checks use."""

COUNTS = """
    SELECT lane, state, sum(change)::bigint AS count FROM (
        SELECT lane, state, count AS change FROM public.perdure_counts
        UNION ALL SELECT lane, state, change FROM public.perdure_count_changes
    ) AS both_counts GROUP BY lane, state HAVING sum(change) <> 0
"""
"""The truth about every lane and state, however much of it is folded."""

OWN = ("count_changes", "migrations")
"""Tables that hold nothing which the others do not tell."""
OWN_COLUMNS = ("held_from", "waited")
"""Columns that only make something quicker to find."""
OWN_CHECKS = {
    "a gate does not say that a task waits at it (gate, task)": """
        SELECT live.gate, live.n FROM live JOIN gates ON gates.gate = live.gate WHERE NOT gates.waited
    """,
}
"""What only this store's rows can contradict."""
TIME_KEYS = ("server_start_us",)
"""Rows of `meta` that tell the store its time."""


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection of one's own to the database, where tables are called without their prefix."""
    connection = psycopg.connect(url, autocommit=True)
    if connection.execute("SELECT to_regclass('plain.counts')").fetchone() == (None,):
        _make_views(connection)
    connection.execute("SET search_path = public, plain")
    return connection


def _make_views(connection: psycopg.Connection[Any]) -> None:
    views = [SQL("CREATE SCHEMA plain"), SQL("CREATE VIEW plain.counts AS ") + SQL(COUNTS)]
    for table in _tables(connection):
        if table != f"{PREFIX}counts":
            name = Identifier(PLAIN, table.removeprefix(PREFIX))
            views.append(SQL("CREATE VIEW {} AS SELECT * FROM {}").format(name, Identifier("public", table)))
    connection.execute(SQL("; ").join(views))


def _tables(connection: psycopg.Connection[Any]) -> list[str]:
    query = """
        SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        AND starts_with(relname, 'perdure_') ORDER BY relname
    """
    return [name for (name,) in connection.execute(query)]


def _columns(connection: psycopg.Connection[Any]) -> dict[str, set[str]]:
    """The columns of each view, and of a user's own tables."""
    query = """
        SELECT relname, array_agg(attname) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE attnum > 0 AND (
            relnamespace = 'plain'::regnamespace AND relkind = 'v'
            OR relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT starts_with(relname, 'perdure_')
        )
        GROUP BY relname
    """
    return {name: set(columns) for name, columns in connection.execute(query)}


def snapshot(connection: psycopg.Connection[Any]) -> dict[str, list[dict[str, Any]]]:
    """Every table with all of its rows, sorted."""
    names = sorted(_columns(connection).keys() - set(OWN))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for name, row in connection.execute(_everything(tuple(names)), prepare=True):
        if not (name == "meta" and row["key"] in TIME_KEYS):
            found[name].append({column: value for column, value in row.items() if column not in OWN_COLUMNS})
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@functools.cache
def _everything(names: tuple[str, ...]) -> bytes:
    parts = [SQL("SELECT {}, to_jsonb(every) FROM {} AS every").format(name, Identifier(name)) for name in names]
    return SQL(" UNION ALL ").join(parts).as_bytes()


def contradictions(place: str | psycopg.Connection[Any]) -> list[str]:
    """One line for each fact that the rows do not agree on, at this URL or through this connection."""
    if isinstance(place, str):
        with connect(place) as connection:
            return contradictions(connection)
    columns = tuple((table, tuple(sorted(names))) for table, names in sorted(_columns(place).items()))
    return [f"{fact}: {row}" for fact, row in place.execute(_checks(columns), prepare=True)]


@functools.cache
def _checks(columns: tuple[tuple[str, tuple[str, ...]], ...]) -> bytes:
    parts: list[Composable] = [
        SQL("SELECT {}, to_jsonb(found)::text FROM ({}) AS found").format(fact, SQL(query))  # type: ignore[arg-type]
        for fact, query in (CHECKS | OWN_CHECKS | _orphans(columns)).items()
    ]
    return SQL(" UNION ALL ").join(parts).as_bytes()


def _orphans(columns: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, str]:
    return {
        f"a row of {table} belongs to a {owners[:-1]} that is gone, by its {column}": f"""
            SELECT {column} FROM {table} WHERE {column} IS NOT NULL
            AND {column} NOT IN (SELECT {"j" if owners == "jobs" else "n"} FROM {owners})
        """
        for table, names in columns
        for column, owners in OWNERS
        if column in names and (table, column) != ("tasks", "n")
    }
