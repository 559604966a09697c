"""One transaction as the operations of this store see it."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import psycopg
from psycopg.pq import Format

from perdure.store.postgres.statements import STATEMENTS, Statement
from perdure.store.wakeups import Topic

_decode = msgspec.json.Decoder().decode
_rows_of = msgspec.json.Decoder(list[msgspec.Raw]).decode

_WRITING = ("INSERT", "UPDATE", "DELETE", "MERGE")


class Connection(Protocol):
    """What a `psycopg.Connection` and a caller's connection that is lent have in common."""

    def cursor(self, *, binary: bool) -> Any:
        """A cursor; `binary`: values travel as the server has them."""


def _raw_cursor(connection: psycopg.Connection[Any]) -> psycopg.RawCursor[Any]:
    """A cursor that hands statements on as they are, without looking for placeholders in them each time."""
    cursor = psycopg.RawCursor(connection)
    cursor.format = Format.BINARY
    return cursor


class Transaction:
    """A connection inside BEGIN ... COMMIT, its instant, and what is to be done once it has committed.

    Rows that statements stage are kept here as JSON text and bound to the statements that read them: a working table of
    the server would be session state, and its every row would cost the server's catalogue and log.
    """

    __slots__ = ("_after_commit", "_changes", "_cursor", "_raw", "_staged", "connection", "now_us", "topics")

    def __init__(self, connection: Connection, now_us: int) -> None:
        self.connection = connection
        self.now_us = now_us
        self.topics = Topic(0)
        self._raw = isinstance(connection, psycopg.Connection)
        self._cursor = (
            _raw_cursor(connection) if isinstance(connection, psycopg.Connection) else connection.cursor(binary=True)
        )
        self._changes = 0
        self._staged: dict[str, list[str]] = {}
        self._after_commit: list[Callable[[], None]] = []

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        """Run the named statement and return its rows. `%(now)s` is bound to the transaction's instant."""
        statement = STATEMENTS[name]
        if statement.clears is not None:
            self._staged.pop(statement.clears, None)
            return []
        bindings["now"] = self.now_us
        for stage in statement.reads:
            bindings[stage] = f"[{','.join(self._staged.get(stage, ()))}]"
        cursor = self._cursor
        if self._raw:
            cursor.execute(statement.numbered, [bindings[name] for name in statement.names])
        else:
            cursor.execute(statement.text, bindings)
        rows = cursor.fetchall() if cursor.description is not None else []
        if statement.stages is not None:
            self._stage(statement, rows)
        elif (cursor.statusmessage or "").startswith(_WRITING):
            self._changes = cursor.rowcount
        return rows

    def _stage(self, statement: Statement, rows: list[tuple[Any, ...]]) -> None:
        text = (rows[0][0] if rows else None) or "[]"
        staged = [bytes(row).decode() for row in _rows_of(text)]
        self._staged.setdefault(statement.stages or "", []).extend(staged)
        self._changes = len(staged)

    def value(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement and return its one value, or `None` when it has no row."""
        rows = self.run(name, **bindings)
        return rows[0][0] if rows else None

    def document(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement, whose one value is a JSON document, and return that decoded."""
        text = self.value(name, **bindings)
        return _decode(text) if text is not None else None

    def staged(self, stage: str) -> list[Any]:
        """The rows staged under this name so far, as objects."""
        return [_decode(row) for row in self._staged.get(stage, ())]

    def changes(self) -> int:
        """How many rows the last writing statement changed or staged."""
        return self._changes

    def announce(self, topics: Topic) -> None:
        """Hint at these topics once the transaction has committed."""
        self.topics |= topics

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call `action` once the transaction has committed; never when it is rolled back."""
        self._after_commit.append(action)

    def committed(self) -> None:
        """Do what waited for the commit."""
        for action in self._after_commit:
            action()
        self._after_commit.clear()
