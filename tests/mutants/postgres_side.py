"""The statements of the store on PostgreSQL."""

import functools
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from mutants.predicates import Mutant, Words
from perdure.store.postgres.statements import STATEMENTS, Statement, parse
from perdure.store.postgres.transaction import Transaction
from servers.databases import end_shared, shared
from servers.postgres import NoServer

_TARGET = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|MERGE INTO)\s+(perdure_\w+)")
_NUMBERED = re.compile(r"\bnextval\('(\w+)'\)")
SLOW_SECONDS = 0.05
"""Mutants of a statement that takes longer are held to differ; it is not run again beside each."""
BIG = 200_000
"""Characters of a batch, or of the tables that are written: where there are more, mutants are held to differ."""

ALWAYS = "PERDURE_ALWAYS"
"""Stands in a mutant until it is known which word fits its place."""

_BEGIN = "SAVEPOINT differing; SET LOCAL lock_timeout = 50; SET LOCAL statement_timeout = 3000"
"""Who would have to wait for somebody, or for ever, makes a difference."""
_END = "ROLLBACK TO SAVEPOINT differing; RELEASE SAVEPOINT differing"

Outcome = tuple[Any, ...]


class PostgresSide:
    """See `Side`. All children share a server; each has databases of its own."""

    world = "postgres"
    foreign = "serializable"
    suites = (
        "tests/conformance",
        "tests/backends/copying",
        *(
            f"tests/backends/postgres/test_{name}.py"
            for name in (
                "duties_at_once",
                "operators_at_once",
                "gates_at_once",
                "hot_path_races",
                "hot_path_order",
                "lanes",
                "transaction",
            )
        ),
    )
    left_out = ("tests/conformance/test_model.py",)
    lives = False
    transaction = Transaction
    words = Words(ALWAYS, "false")

    def __init__(self) -> None:
        self._scratch: psycopg.Connection[Any] | None = None

    def statements(self) -> Mapping[str, str]:
        return {name: each.text.decode() for name, each in STATEMENTS.items()}

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        try:
            databases = shared()
        except NoServer as reason:
            raise SystemExit(str(reason)) from None
        try:
            with psycopg.connect(databases.take(), autocommit=True) as self._scratch:
                yield
        finally:
            end_shared()

    @contextmanager
    def entered(self) -> Iterator[None]:
        with shared().apart():
            yield

    def runnable(self, mutant: Mutant) -> Mutant:
        # Beside a constant stands a value of any type: what never equals it is nothing.
        for word in ("true", "NULL"):
            worded = mutant._replace(sql=mutant.sql.replace(ALWAYS, word))
            if self._compiles(worded):
                return worded
        raise SystemExit(f"this mutant is no SQL: {mutant.name}\n{mutant.sql}")

    def _compiles(self, mutant: Mutant) -> bool:
        assert self._scratch is not None
        text = parse(mutant.statement, mutant.sql).numbered
        return bool(self._scratch.pgconn.prepare(b"", text).status == psycopg.pq.ExecStatus.COMMAND_OK)

    def put(self, statement: str, sql: str) -> None:
        known: Any = STATEMENTS
        known[statement] = parse(statement, sql)

    @contextmanager
    def traced(self, note: Callable[[str], None]) -> Iterator[None]:
        names = {text: name for name, each in STATEMENTS.items() for text in (each.text, each.numbered)}
        execute: Any = psycopg.Cursor.execute

        def traced_execute(self: Any, query: Any, *given: Any, **named: Any) -> Any:
            if isinstance(query, bytes) and query in names:
                note(names[query])
            return execute(self, query, *given, **named)

        psycopg.Cursor.execute = traced_execute  # type: ignore[method-assign]
        try:
            yield
        finally:
            psycopg.Cursor.execute = execute  # type: ignore[method-assign]

    def differing(self, tx: Any, statement: str, bindings: Mapping[str, Any], open_ones: Sequence[Mutant]) -> set[str]:
        everyone = {each.name for each in open_ones}
        connection = tx.connection
        if not isinstance(connection, psycopg.Connection) or connection.autocommit is False:
            return everyone
        original = STATEMENTS[statement]
        bound: dict[str, Any] = {**bindings, "now": tx.now_us}
        bound |= {stage: f"[{','.join(tx._staged.get(stage, ()))}]" for stage in original.reads}
        if max((len(each) for each in bound.values() if isinstance(each, str | bytes)), default=0) > BIG:
            return everyone
        outcome = functools.partial(_outcome, connection, bound, _Targets.of(connection, original))
        begun = time.monotonic()
        expected = outcome(original)
        if time.monotonic() - begun > SLOW_SECONDS or len(str(expected)) > BIG:
            return everyone
        return {each.name for each in open_ones if outcome(parse(statement, each.sql)) != expected}


class _Targets:
    """What a statement writes: the text that reads it, and the text that sets its sequences back."""

    def __init__(self, look: str, set_back: str) -> None:
        self.look = look
        self.set_back = set_back

    @classmethod
    def of(cls, connection: psycopg.Connection[Any], statement: Statement) -> "_Targets":
        text = re.sub(r"--[^\n]*", "", statement.text.decode())
        tables = sorted(set(_TARGET.findall(text)))
        sequences = {*_NUMBERED.findall(text)}
        if tables:
            named = connection.execute("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'").fetchall()
            sequences |= {name for (name,) in named for table in tables if name.startswith(f"{table}_")}
        back = []
        for name in sorted(sequences):
            ((last, called),) = connection.execute(f"SELECT last_value, is_called FROM {name}".encode()).fetchall()
            back.append(f"SELECT setval('{name}', {last}, {called})")
        reads = [
            f"(SELECT coalesce(string_agg(t::text, ';' ORDER BY t::text), '') FROM {each} AS t)" for each in tables
        ]
        return cls(f"SELECT {', '.join(reads)}" if reads else "", "; ".join(back))


def _outcome(
    connection: psycopg.Connection[Any], bound: Mapping[str, Any], targets: _Targets, statement: Statement
) -> Outcome:
    """What a statement answers and leaves in the tables that it writes; it is undone."""
    connection.pgconn.exec_("; ".join(filter(None, (_BEGIN, targets.set_back))).encode())
    try:
        cursor = psycopg.RawCursor(connection)
        cursor.execute(statement.numbered, [bound[name] for name in statement.names], prepare=False)
        rows = cursor.fetchall() if cursor.description is not None else []
        left = connection.execute(targets.look.encode(), prepare=False).fetchall() if targets.look else None
    except psycopg.Error as error:
        return (type(error).__name__, str(error))
    else:
        return (rows, left)
    finally:
        connection.pgconn.exec_("; ".join(filter(None, (_END, targets.set_back))).encode())
