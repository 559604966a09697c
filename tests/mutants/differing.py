"""Finds where a mutant makes a difference: beside each statement its mutants are run on the same rows, and undone.

A test in which no mutant of a statement ever answers or writes anything else than the statement cannot catch one, so
only the others have to be run.
"""

import functools
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from mutants.predicates import Mutant
from perdure.store.sqlite import statements
from perdure.store.sqlite.transaction import Transaction

_TARGET = re.compile(r"\b(?:INSERT(?: OR \w+)? INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)")
BIG = 2_000
"""Rows, and hundreds of characters: where a table or a batch is as big, mutants are not tried but held to differ."""
SLOW_SECONDS = 0.005
"""Mutants of a statement that takes longer are held to differ, too."""
STEPS_MAX = 5_000_000
"""A mutant that needs more of SQLite's steps makes a difference: it might never end."""

Outcome = tuple[Any, ...]


class Differing:
    """Notes, while it watches, which mutants made a difference."""

    def __init__(self, found: Iterable[Mutant]) -> None:
        self.noticed: set[str] = set()
        """Names of mutants. Whoever reads it empties it for what comes next."""
        self.watched: set[str] = set()
        """Names of the statements that a transaction ran; others run where nobody watches, as at the opening."""
        self._mutants: dict[str, list[Mutant]] = {}
        for mutant in found:
            self._mutants.setdefault(mutant.statement, []).append(mutant)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every transaction of this process."""
        run, insert = Transaction.run, Transaction.insert
        differing = self

        def watched_run(self: Transaction, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
            # The instant is bound by the statement itself, below.
            differing.watched.add(name)
            differing._compare(self, name, statements.STATEMENTS[name], {**bindings, "now": self.now_us})
            return run(self, name, **bindings)

        def watched_insert(self: Transaction, name: str, /, shared: Any, rows: Any, width: int) -> None:
            differing.watched.add(name)
            # These have few predicates, and every row has its own values.
            differing.noticed.update(mutant.name for mutant in differing._mutants.get(name, ()))
            insert(self, name, shared, rows, width)

        Transaction.run, Transaction.insert = watched_run, watched_insert  # type: ignore[method-assign]
        try:
            yield
        finally:
            Transaction.run, Transaction.insert = run, insert  # type: ignore[method-assign]

    def _compare(self, tx: Transaction, name: str, sql: str, bindings: dict[str, Any]) -> None:
        open_ones = [each for each in self._mutants.get(name, ()) if each.name not in self.noticed]
        if not open_ones:
            return
        # A simulated disk stands before the connection.
        connection = getattr(tx.connection, "_connection", tx.connection)
        found = _TARGET.search(re.sub(r"--[^\n]*", "", sql))
        target = found[1] if found else None
        if (
            not isinstance(connection, apsw.Connection)
            or not connection.in_transaction
            or _big(connection, bindings, target)
        ):
            self.noticed.update(each.name for each in open_ones)
            return
        outcome = functools.partial(_outcome, connection, bindings, target)
        begun = time.monotonic()
        expected = outcome(sql)
        if time.monotonic() - begun > SLOW_SECONDS:
            self.noticed.update(each.name for each in open_ones)
            return
        self.noticed.update(each.name for each in open_ones if outcome(each.sql) != expected)


def _big(connection: apsw.Connection, bindings: dict[str, Any], target: str | None) -> bool:
    bound = max((len(each) for each in bindings.values() if isinstance(each, str | bytes)), default=0)
    if bound > 100 * BIG or target is None:
        return bound > 100 * BIG
    ((rows,),) = connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM {target} LIMIT {BIG})")
    return bool(rows == BIG)


def _outcome(connection: apsw.Connection, bindings: dict[str, Any], target: str | None, sql: str) -> Outcome:
    """What a statement answers and leaves in the table that it writes; it is undone."""
    connection.execute("SAVEPOINT differing")
    limited = "RECURSIVE" in sql
    if limited:
        connection.set_progress_handler(lambda: True, STEPS_MAX)
    try:
        rows = list(connection.execute(sql, bindings))
        left = list(connection.execute(f"SELECT * FROM {target}")) if target else None
    except (apsw.Error, OverflowError) as error:
        return (type(error).__name__, str(error))
    else:
        return (rows, left)
    finally:
        if limited:
            connection.set_progress_handler(None)
        connection.execute("ROLLBACK TO differing")
        connection.execute("RELEASE differing")
