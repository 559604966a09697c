"""One transaction as the operations of this store see it."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import psycopg
from psycopg import errors

from perdure.store.postgres.dialects import POSTGRES, Dialect
from perdure.store.postgres.wire import Answer, Query, Wire
from perdure.store.relational.transaction import batch
from perdure.store.wakeups import Topic

_decode = msgspec.json.Decoder().decode
_rows_of = msgspec.json.Decoder(list[msgspec.Raw]).decode

_WRITING = (b"INSERT", b"UPDATE", b"DELETE", b"MERGE")


class Line(Protocol):
    """Where statements are run: the wire of a session of the store's own, or a connection of a caller's."""

    def run_together(self, queries: Sequence[Query]) -> list[Answer]:
        """Run statements in order; after one that fails, the later ones are not run."""


class Reached(errors.SerializationFailure):
    """A transaction that has gates needs others that somebody has: run again, it takes these first."""

    def __init__(self, gates: Collection[int]) -> None:
        super().__init__("another transaction has a gate that this one came to with others in its hands")
        self.gates = gates


class Time(Protocol):
    """The store's time, for a transaction that goes on."""

    def now_us(self, server_us: int) -> int:
        """The instant at which the server's clock has shown this."""

    def reckoned_us(self) -> int:
        """The instant that it is now, from what earlier transactions were told: not later than it is."""


class Opening(NamedTuple):
    """What begins a transaction together with its first statement, and what looks at the answers; it may raise."""

    queries: Sequence[Query]
    begun: Callable[[Sequence[Answer]], None]


def line_of(connection: Any) -> Line:
    """Where statements are run on a connection."""
    return Wire(connection) if isinstance(connection, psycopg.Connection) else connection


class Transaction:
    """A connection inside BEGIN ... COMMIT, its instant, and what is to be done once it has committed.

    Rows that statements stage are kept here as JSON text and bound to the statements that read them: a working table of
    the server would be session state, and its every row would cost the server's catalogue and log.
    """

    __slots__ = (
        "_after_commit",
        "_changes",
        "_connection",
        "_first",
        "_line",
        "_opening",
        "_staged",
        "_statements",
        "_time",
        "dialect",
        "has_gates",
        "now_us",
        "topics",
    )

    def __init__(
        self,
        connection: Any,
        now_us: int,
        line: Line | None = None,
        opening: Opening | None = None,
        time: Time | None = None,
        dialect: Dialect = POSTGRES,
    ) -> None:
        """`time` tells how late it is; without one, it is all at one instant."""
        self.dialect = dialect
        self._statements = dialect.statements
        self.now_us = now_us
        self._time = time
        self.topics = Topic(0)
        self._connection = connection
        self._line = line or line_of(connection)
        self._opening = opening
        self._changes = 0
        self._staged: dict[str, list[str]] = {}
        self._after_commit: list[Callable[[], None]] = []
        self._first: Collection[int] | None = None
        self.has_gates = False
        """Whether it may have locked gates, or what others come to who have some."""

    @property
    def connection(self) -> Any:
        """The connection, with the transaction begun on it."""
        self.begin()
        return self._connection

    def begin(self) -> None:
        """Let the server know of it, if no statement has yet."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.begun(self._line.run_together(opening.queries))

    def refresh(self) -> None:
        """It may have waited for a lock: from here on its instant is that of now, as far as that is known unasked."""
        if self._time is not None:
            self.now_us = max(self.now_us, self._time.reckoned_us())

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        """Run the named statement and return its rows. `%(now)s` is bound to the transaction's instant."""
        statement = self._statements[name]
        if statement.clears is not None:
            self._staged.pop(statement.clears, None)
            return []
        bindings["now"] = self.now_us
        for stage in statement.reads:
            bindings[stage] = f"[{','.join(self._staged.get(stage, ()))}]"
        (answer,) = self._ask([(statement, [bindings[name] for name in statement.names])])
        rows = answer.rows or []
        if statement.stages is not None:
            self.stage(statement.stages, (rows[0][0] if rows else None) or "[]")
        elif answer.status.startswith(_WRITING):
            self._changes = answer.changed
        return rows

    def run_together(self, named: Sequence[tuple[str, dict[str, Any]]]) -> list[list[tuple[Any, ...]]]:
        """Run statements that have nothing to do with staged rows, in order and in one message: the rows of each."""
        queries = []
        for name, bindings in named:
            statement = self._statements[name]
            bindings["now"] = self.now_us
            queries.append((statement, [bindings[each] for each in statement.names]))
        return [answer.rows or [] for answer in self._ask(queries)]

    def _ask(self, queries: Sequence[Query]) -> list[Answer]:
        opening, self._opening = self._opening, None
        if opening is None:
            return self._line.run_together(queries)
        first = len(opening.queries)
        answers = self._line.run_together([*opening.queries, *queries])
        opening.begun(answers[:first])
        return answers[first:]

    def stage(self, name: str, text: str) -> None:
        """Stage rows under this name: a JSON array of objects."""
        staged = [bytes(row).decode() for row in _rows_of(text)]
        self._staged.setdefault(name, []).extend(staged)
        self._changes = len(staged)

    def value(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement and return its one value, or `None` when it has no row."""
        rows = self.run(name, **bindings)
        return rows[0][0] if rows else None

    def document(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement, whose one value is a JSON document, and return that decoded."""
        text = self.value(name, **bindings)
        return _decode(text) if text is not None else None

    def latest(self, name: str, /, **bindings: Any) -> Any:
        """As `document`, of a statement that tells the server's clock too. What it has seen was committed before that,
        at instants that the clock had shown by then; reckoning would be off by the way of a message.
        """
        ((text, server_us),) = self.run(name, **bindings)
        if self._time is not None:
            self.now_us = max(self.now_us, self._time.now_us(server_us))
        return _decode(text)

    def begin_with(self, gates: Collection[int]) -> None:
        """It will be run again where it has to, and begins with these gates, for which others may keep it waiting.

        While it has some, it waits for no others that are there: so whoever waits at gates has none himself. Rows of
        tasks and jobs, and gates that are being made, it may wait for all the same; the server ends one of two that
        then wait for each other, and that one is run again.
        """
        self._first = gates
        if gates:
            self.has_gates = True
            self.run("gate_take", batch=batch(sorted(gates)))

    def wait_no_more(self) -> None:
        """It is about to lock what others come to who have gates: it waits for none from here on, as if it had some."""
        self.has_gates = True

    def reach(self, name: str, gates: str) -> None:
        """Gates are about to be locked, which the named statement takes as this batch; it locks those that it can have.

        Raises `Reached` where the transaction has gates already and somebody else has these.
        """
        if self.has_gates and self._first is not None:
            wanted, had = self.document(name, batch=gates)
            if len(had) < len(wanted):
                raise Reached({*self._first, *wanted})
        self.has_gates = True

    def is_first_to_reach(self) -> bool:
        """Whether gates may be locked that are not known before. If so, the transaction counts as one that has some."""
        if self.has_gates and self._first is not None:
            return False
        self.has_gates = True
        return True

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
