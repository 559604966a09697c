"""All rows of a PostgreSQL store, for copying."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, LiteralString

import msgspec
import psycopg
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from perdure.errors import Misuse
from perdure.store.copying import PREFIX, Key, Row, Table
from perdure.store.postgres.connecting import READ_COMMITTED, Address, Connector
from perdure.store.postgres.faults import translate
from perdure.store.postgres.session import Limits
from perdure.store.postgres.statements import STATEMENTS

OWN = {"workers": {"held_from"}, "gates": {"waited"}}
"""Columns that only this store has, and fills by itself."""

_NO_LIMITS = Limits(0, 0, 0)


class PostgresRows:
    """Meets `store.copying.Rows` on a database whose schema is current."""

    def __init__(self, url: str) -> None:
        """Connects. Raises `Misuse` where the server cannot copy, or one of `Unavailable`."""
        connector = Connector(Address(url), _NO_LIMITS, READ_COMMITTED)
        if not connector.dialect.copies:
            raise Misuse("`perdure db copy` does not know CockroachDB: its rows are read by PostgreSQL's own COPY")
        self.place = connector.place
        self._connection = connector.dial()
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._types: dict[str, dict[str, str]] = {}
        for table, column, type in self._ask("copy_tables"):
            self._types.setdefault(table.removeprefix(PREFIX), {})[column] = type

    def _ask(self, name: str, **bindings: Any) -> list[Row]:
        cursor = self._connection.execute(STATEMENTS[name].text, bindings)
        return cursor.fetchall() if cursor.description is not None else []

    def tables(self) -> set[str]:
        """The names of all tables, without their prefix."""
        return {*self._types}

    def columns(self, table: Table) -> set[str]:
        """The columns that every store has."""
        return self._types[table.name].keys() - OWN.get(table.name, set())

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is as of one moment."""
        with self.transaction():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written inside is there together, or not at all."""
        try:
            with self._connection.transaction():
                yield
        except Exception as error:
            raise translate(error, self.place) from error

    def page(self, table: Table, columns: Sequence[str], after: Key | None) -> list[Row]:
        """The rows after a key, in the order of keys."""
        types = self._types[table.name]
        shown = [_read(column, types[column]) for column in columns]
        query = self._statement("page_first" if after is None else "page_next", table, columns=SQL(", ").join(shown))
        cursor = psycopg.Cursor(self._connection, row_factory=tuple_row)
        rows = cursor.execute(query, after, binary=True).fetchall()
        normal = [place for place, column in enumerate(columns) if types[column] == "jsonb"]
        return [_normalized(row, normal) for row in rows] if normal else rows

    def write(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Store rows."""
        query = self._statement("insert", table, columns=SQL(", ").join(map(Identifier, columns)))
        with self._connection.cursor().copy(query) as copy:
            for row in rows:
                copy.write_row(row)

    def greatest(self, table: Table) -> Key | None:
        """The last key; `None` where there are no rows."""
        key: Key | None = self._connection.execute(self._statement("greatest", table)).fetchone()
        return key

    def _statement(self, name: str, table: Table, **parts: Composable) -> Composed:
        text = (files("perdure.store.postgres") / "copying" / f"{name}.sql").read_text(encoding="utf-8")
        types = self._types[table.name]
        key = [_compared(column, types[column]) for column in table.key]
        return SQL(text).format(
            table=Identifier(PREFIX + table.name),
            key=SQL(", ").join(key),
            backwards=SQL(", ").join(SQL("{} DESC").format(column) for column in key),
            after=SQL(", ").join(SQL(_bound(types[column])) for column in table.key),
            limit=Literal(table.page_rows),
            **parts,
        )

    def held(self) -> int:
        """How many tasks have a live attempt."""
        return int(self._ask("copy_held")[0][0])

    def origin(self) -> str | None:
        """Where the rows come from that are being copied to this store."""
        rows = self._ask("copy_origin")
        return rows[0][0] if rows else None

    def begin(self, origin: str) -> None:
        """Note where rows come from, until `finish`."""
        self._ask("copy_begin", origin=origin)

    def finish(self) -> None:
        """Count the rows, let numbers and places in line begin above the copied ones, and forget the origin."""
        for name in ("copy_count", "copy_lines", "copy_forget"):
            self._ask(name)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _read(column: str, type: str) -> Composable:
    shapes: dict[str, str] = {"boolean": "{}::integer", "json": "{}::text", "jsonb": "{}::text"}
    return SQL(shapes.get(type, "{}")).format(Identifier(column))


def _bound(type: str) -> LiteralString:
    return "%s::text" if type == "text" else "%s::bigint"


def _compared(column: str, type: str) -> Composable:
    return SQL('{} COLLATE "C"' if type == "text" else "{}").format(Identifier(column))


def _normalized(row: Row, places: Sequence[int]) -> Row:
    """JSON as perdure writes it, where the server keeps documents in a way of its own."""
    compact: Callable[[str], str] = lambda text: msgspec.json.format(text, indent=-1)  # noqa: E731
    return tuple(compact(value) if place in places and value is not None else value for place, value in enumerate(row))
