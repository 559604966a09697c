"""One connection with the server, and how transactions are begun and ended on it.

Nothing is left in the session between transactions where a pooler may give each transaction another one: what a
transaction needs is set within itself. Only where the server's own process answers, statements are prepared (unless it
is said that the pooler keeps them, or that they are not to be), and what all writing transactions need is set once, by
the first of them. That process names itself when it is connected to and again when it is asked; a pooler cannot make
the two agree.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from psycopg import errors
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from perdure.errors import invariant
from perdure.store.postgres.dialects import Dialect
from perdure.store.postgres.statements import STATEMENTS
from perdure.store.postgres.wire import Query, Told, Wire

_COMMIT = STATEMENTS["transaction_commit"].text
_DURABILITY = STATEMENTS["transaction_durability"]
_NOTIFY = STATEMENTS["wakeup_notify"]
_ROLLBACK = STATEMENTS["transaction_rollback"].text


class Limits(NamedTuple):
    """How long things may take within a transaction: milliseconds."""

    lock_timeout_ms: int
    """A lock that another transaction holds."""
    statement_timeout_ms: int
    """One statement that writes."""
    question_timeout_ms: int
    """One statement that only reads."""
    idle_timeout_ms: int = 10_000
    """This process, between two statements: one that stands still, or is cut off, holds up nobody for longer. Its
    transaction is undone then, and run again if it comes back.
    """


class ServerFacts(NamedTuple):
    """Which process of the server answers, and when the server was started."""

    backend: int
    start_us: int


def server_facts(connection: psycopg.Connection[Any], dialect: Dialect) -> ServerFacts:
    """Ask the server. Raises what the driver raises."""
    rows = connection.execute(dialect.statements["server_facts"].text, prepare=False).fetchall()
    invariant(len(rows) == 1, "a server tells its facts in one row")
    return ServerFacts(*rows[0])


class Session:
    """A connection that runs one transaction after the other. Used by whoever has its turn."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        limits: Limits,
        serializable: bool,
        *,
        dialect: Dialect,
        prepare: bool | None = None,
    ) -> None:
        self.connection = connection
        self.dialect = dialect
        self._serializable = serializable
        backend, self.server_start_us = server_facts(connection, dialect)
        self.pooled = not dialect.keeps_sessions or backend != connection.info.backend_pid
        connection.prepare_threshold = None
        self.wire = Wire(connection, prepare=not self.pooled if prepare is None else prepare)
        begin = "transaction_begin_serializable" if serializable else "transaction_begin"
        lasting = [*(["writing_by_index"] if dialect.steers_plans else []), "transaction_settings"]
        named = [begin, *lasting, "transaction_durability"] if self.pooled else [begin, "transaction_durability"]
        self._begin_durable = self._compose(named, limits, durable=True)
        self._begin_light = self._compose(named, limits, durable=False)
        self._first = None if self.pooled else self._compose(lasting, limits, local=False)
        self._opening = dialect.statements[begin]
        reading = limits._replace(statement_timeout_ms=limits.question_timeout_ms)
        steering = ["reading_by_index"] if dialect.steers_plans else []
        named = ["transaction_begin_read", *steering, "transaction_settings", "transaction_durability"]
        self._begin_reading = self._compose(named, reading)

    def _compose(self, names: list[str], limits: Limits, *, durable: bool = False, local: bool = True) -> bytes:
        """One text of these statements, for one round trip. `local`: what they set holds for the transaction alone."""
        bindings = {**limits._asdict(), "durable": durable, "local": local}
        cursor = psycopg.ClientCursor(self.connection)
        return ";\n".join(cursor.mogrify(self.dialect.statements[name].text, bindings) for name in names).encode()

    def begin(self, *, durable: bool) -> int:
        """Begin a transaction that writes, and return the server's time. One that is not durable awaits no disk."""
        if self._first is not None:
            self._ask(self._first)
            self._first = None
        return self._begin(self._begin_durable if durable else self._begin_light)

    def opening(self, *, durable: bool) -> list[Query] | None:
        """What begins a transaction that writes, to travel with its first statement: the last of it tells the time.

        `None` where it has to be begun by itself: behind a pooler, and the first time.
        """
        if self.pooled or self._first is not None:
            return None
        return [(self._opening, ()), (_DURABILITY, (durable,))]

    @property
    def sends(self) -> bool:
        """Whether a statement that commits by itself may be sent, as whatever writes here."""
        return not self.pooled and self._first is None and not self._serializable

    def send(self, statement: Query, turn: Callable[[], str | None], told: Told) -> None:
        """Send such a statement, and have the hint of this turn, if any, announced behind it, as `Wire.send`."""

        def later() -> Query | None:
            hint = turn()
            return None if hint is None else (_NOTIFY, (hint,))

        self.wire.send(statement, later, told)

    def begin_reading(self) -> int:
        """Begin a transaction that reads one snapshot, and return the server's time."""
        return self._begin(self._begin_reading)

    def _begin(self, text: bytes) -> int:
        answer = self._ask(text)
        value = answer.get_value(0, answer.nfields - 1)
        invariant(value is not None, "a transaction begins at an instant")
        return int(value or 0)

    def commit(self, hint: str | None = None) -> None:
        """Commit, and have a hint announced behind it. When this raises, nobody knows whether the server has."""
        if hint is None:
            self._ask(_COMMIT)
        else:
            self.wire.run_before(STATEMENTS["transaction_commit"], (_NOTIFY, (hint,)))

    def roll_back(self) -> None:
        """Undo what was begun, if anything was. Harmless on a connection that has broken."""
        if self.broken or self.connection.info.transaction_status is TransactionStatus.IDLE:
            return
        try:
            self._ask(_ROLLBACK)
        except psycopg.Error:
            self.close()

    def _ask(self, text: bytes) -> PGresult:
        """Run statements without bindings and return the last one's answer. A cursor would cost more than they do."""
        self.wire.settle()
        answer = self.connection.pgconn.exec_(text)
        if answer.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            raise _error_of(answer)
        return answer

    @property
    def broken(self) -> bool:
        """Whether nothing more can be asked of it."""
        return self.connection.closed

    def close(self) -> None:
        """Let go of the connection."""
        self.wire.close()


def _error_of(answer: PGresult) -> psycopg.Error:
    """The driver's error for an answer; without a state, the connection has broken."""
    state = answer.error_field(DiagnosticField.SQLSTATE)
    message = answer.get_error_message()
    if state is None:
        return psycopg.OperationalError(message)
    try:
        return errors.lookup(state.decode())(message)
    except KeyError:
        return psycopg.DatabaseError(message)
