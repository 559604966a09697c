"""One connection with the server, and how transactions are begun and ended on it.

Nothing is left in the session between transactions, so that a pooler may give each transaction another one: what a
transaction needs is set within itself. Statements are prepared only where the server's own process answers: a prepared
statement is a thing of the session too. That process names itself when it is connected to and again when it is asked; a
pooler cannot make the two agree.
"""

from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from perdure.store.postgres.statements import STATEMENTS

PREPARE_AFTER = 5
"""How often a statement is run before it is prepared."""
PREPARED_MAX = 256
"""Prepared statements kept by each connection: more than there are files in `sql/` that a connection runs."""

_COMMIT = STATEMENTS["transaction_commit"].text
_ROLLBACK = STATEMENTS["transaction_rollback"].text


class Limits(NamedTuple):
    """How long things may take within a transaction: milliseconds."""

    lock_timeout_ms: int
    """A lock that another transaction holds."""
    statement_timeout_ms: int
    """One statement that writes."""
    question_timeout_ms: int
    """One statement that only reads."""
    idle_timeout_ms: int = 30_000
    """This process, between two statements: a process that stands still holds up nobody for longer."""


class Session:
    """A connection that runs one transaction after the other. Used by one thread at a time."""

    def __init__(self, connection: psycopg.Connection[Any], limits: Limits, serializable: bool) -> None:
        self.connection = connection
        backend, self.server_start_us = self._facts()
        self.pooled = backend != connection.info.backend_pid
        connection.prepare_threshold = None if self.pooled else PREPARE_AFTER
        connection.prepared_max = PREPARED_MAX
        begin = "transaction_begin_serializable" if serializable else "transaction_begin"
        self._begin_durable = self._compose([begin, "writing_by_index"], limits, durable=True)
        self._begin_light = self._compose([begin, "writing_by_index"], limits, durable=False)
        reading = limits._replace(statement_timeout_ms=limits.question_timeout_ms)
        self._begin_reading = self._compose(["transaction_begin_read", "reading_by_index"], reading, durable=False)

    def _facts(self) -> tuple[int, int]:
        row = self.connection.execute(STATEMENTS["server_facts"].text, prepare=False).fetchone()
        assert row is not None
        return row[0], row[1]

    def _compose(self, names: list[str], limits: Limits, *, durable: bool) -> bytes:
        """One text of these statements and of what holds for the transaction, for one round trip."""
        bindings = {**limits._asdict(), "durable": durable}
        settings = psycopg.ClientCursor(self.connection).mogrify(STATEMENTS["transaction_settings"].text, bindings)
        return b";\n".join([*(STATEMENTS[name].text for name in names), settings.encode()])

    def begin(self, *, durable: bool) -> int:
        """Begin a transaction that writes, and return the server's time. One that is not durable awaits no disk."""
        return self._begin(self._begin_durable if durable else self._begin_light)

    def begin_reading(self) -> int:
        """Begin a transaction that reads one snapshot, and return the server's time."""
        return self._begin(self._begin_reading)

    def _begin(self, text: bytes) -> int:
        cursor = self.connection.execute(text, prepare=False)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        assert row is not None
        now_us: int = row[-1]
        return now_us

    def commit(self) -> None:
        """Commit. When this raises, nobody knows whether the server has."""
        self.connection.execute(_COMMIT, prepare=False)

    def roll_back(self) -> None:
        """Undo what was begun, if anything was. Harmless on a connection that has broken."""
        if self.broken or self.connection.info.transaction_status is TransactionStatus.IDLE:
            return
        try:
            self.connection.execute(_ROLLBACK, prepare=False)
        except psycopg.Error:
            self.close()

    @property
    def broken(self) -> bool:
        """Whether nothing more can be asked of it."""
        return self.connection.closed

    def close(self) -> None:
        """Let go of the connection."""
        self.connection.close()
