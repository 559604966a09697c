"""All rows of a SQLite store, for copying."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files

import apsw

from perdure.store.copying import PREFIX, Key, Row, Table
from perdure.store.sqlite.faults import translate
from perdure.store.sqlite.lock import FileLock
from perdure.store.sqlite.opening import absolute, open_writing
from perdure.store.sqlite.statements import STATEMENTS

LOCK_SECONDS = 10.0


class SqliteRows:
    """Meets `store.copying.Rows` on a file whose schema is current."""

    def __init__(self, path: str) -> None:
        self.place = absolute(path)
        self._lock = FileLock(self.place, LOCK_SECONDS)
        self._connection: apsw.Connection = open_writing(self.place, LOCK_SECONDS)
        self._columns: dict[str, set[str]] = {}
        for table, column in self._connection.execute(STATEMENTS["copy_tables"]):
            self._columns.setdefault(table.removeprefix(PREFIX), set()).add(column)

    def tables(self) -> set[str]:
        """The names of all tables, without their prefix."""
        return {*self._columns}

    def columns(self, table: Table) -> set[str]:
        """The columns that every store has."""
        return self._columns[table.name]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is as of one moment."""
        with self._between("transaction_begin_read"):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written inside is there together, or not at all."""
        with self._lock.held(), self._between("transaction_begin"):
            yield

    @contextmanager
    def _between(self, begin: str) -> Iterator[None]:
        try:
            self._connection.execute(STATEMENTS[begin])
            yield
            self._connection.execute(STATEMENTS["transaction_commit"])
        except Exception as error:
            if self._connection.in_transaction:
                self._connection.execute(STATEMENTS["transaction_rollback"])
            raise translate(error, self.place) from error

    def page(self, table: Table, columns: Sequence[str], after: Key | None) -> list[Row]:
        """The rows after a key, in the order of keys."""
        text = _statement("page_first" if after is None else "page_next", table, columns)
        return list(self._connection.execute(text, after or ()))

    def write(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Store rows."""
        self._connection.executemany(_statement("insert", table, columns), rows)

    def greatest(self, table: Table) -> Key | None:
        """The last key; `None` where there are no rows."""
        rows = list(self._connection.execute(_statement("greatest", table, ())))
        return rows[0] if rows else None

    def held(self) -> int:
        """How many tasks have a live attempt."""
        [(held,)] = self._connection.execute(STATEMENTS["copy_held"])
        return int(held)

    def origin(self) -> str | None:
        """Where the rows come from that are being copied to this store."""
        rows = list(self._connection.execute(STATEMENTS["copy_origin"]))
        return rows[0][0] if rows else None

    def begin(self, origin: str) -> None:
        """Note where rows come from, until `finish`."""
        self._connection.execute(STATEMENTS["copy_begin"], {"origin": origin})

    def finish(self) -> None:
        """Count the rows, let places in line begin above the copied ones, and forget the origin."""
        for name in ("copy_count", "copy_lines", "copy_forget"):
            self._connection.execute(STATEMENTS[name])

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close(True)
        self._lock.close()


def _statement(name: str, table: Table, columns: Sequence[str]) -> str:
    text = (files("perdure.store.sqlite") / "copying" / f"{name}.sql").read_text(encoding="utf-8")
    return text.format(
        table=PREFIX + table.name,
        columns=", ".join(columns),
        key=", ".join(table.key),
        backwards=", ".join(f"{column} DESC" for column in table.key),
        after=", ".join("?" for _ in table.key),
        values=", ".join("?" for _ in columns),
        limit=table.page_rows,
    )
