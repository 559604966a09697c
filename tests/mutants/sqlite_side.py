"""The statements of the store on SQLite."""

import functools
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import apsw
import apsw.ext

from mutants.hand_made import replace
from mutants.predicates import NUMBERS, Mutant
from perdure.store.sqlite.opening import open_writing
from perdure.store.sqlite.schema import known_steps, take_steps
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.transaction import Transaction

_TARGET = re.compile(r"\b(?:INSERT(?: OR \w+)? INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)")
BIG = 2_000
"""Rows, and hundreds of characters: where a table or a batch is as big, mutants are not tried but held to differ."""
SLOW_SECONDS = 0.005
"""Mutants of a statement that takes longer are held to differ, too."""
STEPS_MAX = 5_000_000
"""A mutant that needs more of SQLite's steps makes a difference: it might never end."""

Outcome = tuple[Any, ...]


class SqliteSide:
    """See `Side`."""

    world = "sqlite"
    foreign = "postgres"
    suites = (
        "tests/conformance",
        "tests/backends/sqlite",
        "tests/backends/copying",
        "tests/engine/test_lose_on_store.py",
    )
    left_out = ("tests/conformance/test_model.py",)
    """Random lives catch nearly everything, and take a minute for it: left out, so that what is left must be sharp."""
    lives = True
    transaction = Transaction
    words = NUMBERS

    def __init__(self) -> None:
        self._scratch = open_writing(":memory:", 1.0)
        take_steps(self._scratch, known_steps(), 1)

    def statements(self) -> Mapping[str, str]:
        return STATEMENTS

    def runnable(self, mutant: Mutant) -> Mutant:
        if self._compiles(mutant.sql):
            return mutant
        # An index hint may need the predicate that is dropped.
        free = mutant._replace(sql=re.sub(r"\sINDEXED BY \w+", "", mutant.sql))
        if not self._compiles(free.sql):
            raise SystemExit(f"this mutant is no SQL: {mutant.name}\n{mutant.sql}")
        return free

    def _compiles(self, sql: str) -> bool:
        try:
            apsw.ext.query_info(self._scratch, sql)
        except apsw.SQLError:
            return False
        return True

    def put(self, statement: str, sql: str) -> None:
        replace(statement, sql)

    def at_hand(self) -> AbstractContextManager[None]:
        return nullcontext()

    def entered(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def traced(self, note: Callable[[str], None]) -> Iterator[None]:
        names = {sql: name for name, sql in STATEMENTS.items()}

        def trace(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
            if sql in names:
                note(names[sql])
            return True

        def hook(connection: apsw.Connection) -> None:
            connection.exec_trace = trace

        apsw.connection_hooks.append(hook)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(hook)

    def differing(self, tx: Any, statement: str, bindings: Mapping[str, Any], open_ones: Sequence[Mutant]) -> set[str]:
        # A simulated disk stands before the connection.
        connection = getattr(tx.connection, "_connection", tx.connection)
        sql = STATEMENTS[statement]
        found = _TARGET.search(re.sub(r"--[^\n]*", "", sql))
        target = found[1] if found else None
        if (
            not isinstance(connection, apsw.Connection)
            or not connection.in_transaction
            or _big(connection, bindings, target)
        ):
            return {each.name for each in open_ones}
        outcome = functools.partial(_outcome, connection, {**bindings, "now": tx.now_us}, target)
        begun = time.monotonic()
        expected = outcome(sql)
        if time.monotonic() - begun > SLOW_SECONDS:
            return {each.name for each in open_ones}
        return {each.name for each in open_ones if outcome(each.sql) != expected}


def _big(connection: apsw.Connection, bindings: Mapping[str, Any], target: str | None) -> bool:
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
