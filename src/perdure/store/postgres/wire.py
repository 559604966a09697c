"""Statements on one connection as the server takes them: several in one message where none needs another's answer.

A driver's cursor waits for each answer before it sends the next statement, and on an idle machine both sides take
longer to wake up than the statement takes. So what begins a transaction travels with its first statement, and a hint
goes right behind its commit. Statements are prepared once they have been run a few times, where the next one meets the
same process of the server.
"""

import contextlib
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, generators
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from perdure.errors import invariant
from perdure.store.postgres.statements import Statement

PREPARE_AFTER = 2
"""How often a statement is run before it is prepared."""

_UNSAID, _BOOL, _BYTES, _INT8, _TEXT, _BYTES_ARRAY, _TEXT_ARRAY = 0, 16, 17, 20, 25, 1001, 1009
"""The server's numbers of types. What is unsaid is what the statement casts it to."""
_int8 = struct.Struct("!q").pack
_size = struct.Struct("!i").pack
_array = struct.Struct("!iiIii").pack
"""Of an array: its dimensions, whether any is null, its type, how many, the number of the first."""

Query = tuple[Statement, Sequence[Any]]
"""A statement and the values of its names, in their order."""
_Key = tuple[str, tuple[int, ...]]
_CUT_OFF = "the server's answers ended before all of them had come"
_GOOD = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class Answer(NamedTuple):
    """What came of one statement; `rows` is `None` where it has none to give."""

    rows: list[tuple[Any, ...]] | None
    status: bytes
    changed: int


Told = Callable[[Answer | psycopg.Error], None]
"""Is told an answer, or why there is none."""


class _Due(NamedTuple):
    """Results that are to come, up to the end of one message."""

    expected: list[_Key | None]
    told: Told | None
    """Who is told the answer, if anybody."""
    came: list[PGresult]


class Wire:
    """Used by whoever has the turn of its session. `prepare`: whether statements may be prepared."""

    def __init__(self, connection: psycopg.Connection[Any], *, prepare: bool = False) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._prepare = prepare
        self._used: dict[_Key, int] = {}
        self._names: dict[_Key, bytes] = {}
        self._loading = Transformer(connection)
        self._due: deque[_Due] = deque()
        """What is to come and whoever uses the wire next reads first."""

    def run_together(self, queries: Sequence[Query]) -> list[Answer]:
        """Run statements that travel together, in order; after one that fails, the later ones are not run.

        Raises the driver's errors.
        """
        bound = [_bound(*each) for each in queries]
        with self._connection.lock, self._piping():
            expected: list[_Key | None] = []
            for each in bound:
                expected += self._send(each)
            self._pg.pipeline_sync()
            results = self._fetch(expected)
        return [self._answer(each) for each in results]

    def run_before(self, statement: Statement, later: Query) -> None:
        """Run one statement and wait for its answer; `later` runs behind it by itself, and nobody waits for its answer.

        What goes wrong with the later one is nobody's failure.
        """
        first, second = _bound(statement, ()), _bound(*later)
        with self._connection.lock, self._piping():
            expected = self._send(first)
            self._pg.pipeline_sync()
            left = self._send(second)
            self._pg.pipeline_sync()
            results = self._fetch(expected)
            self._due.append(_Due(left, None, []))
        for each in results:
            self._answer(each)

    def send(self, statement: Query, later: Callable[[], Query | None], told: Told) -> None:
        """Send a statement and return at once, and behind it, as `run_before` does, what `later` has, if anything.

        `told` is called with the answer, or with what went wrong, by whoever reads it: a `look`, or the next use of the
        wire, on any thread. `later` is asked once the statement can be sent. Raises `psycopg.DataError` for values that
        cannot.
        """
        first = _bound(*statement)
        query = later()
        second = None if query is None else _bound(*query)
        # What goes wrong from here on is told.
        with contextlib.suppress(psycopg.OperationalError), self._connection.lock, self._breaking():
            fresh = not self._due
            self._due.append(_Due([], told, []))
            if fresh:
                self._pg.enter_pipeline_mode()
            self._due[-1].expected.extend(self._send(first))
            self._pg.pipeline_sync()
            if second is not None:
                self._due.append(_Due(self._send(second), None, []))
                self._pg.pipeline_sync()
            if self._pg.flush():
                raise psycopg.OperationalError("the server does not take what is sent to it")

    def look(self) -> None:
        """Tell what has come of what was sent, without waiting."""
        pg = self._pg
        with self._connection.lock, self._breaking():
            pg.consume_input()
            ended = False
            while self._due and not pg.is_busy():
                result = pg.get_result()
                if result is None:
                    # The end of one statement's results. Twice in a row, nothing more will come.
                    if ended:
                        raise psycopg.OperationalError(_CUT_OFF)
                    ended = True
                    continue
                ended = False
                if result.status != ExecStatus.PIPELINE_SYNC:
                    if len(self._due[0].came) == len(self._due[0].expected):
                        raise _lost(result)
                    self._due[0].came.append(result)
                    continue
                self._tell(self._due.popleft())
                if not self._due:
                    pg.exit_pipeline_mode()

    def settle(self) -> None:
        """Read what is due. Raises only when the connection has broken."""
        if self._due:
            with self._connection.lock, self._piping():
                pass

    def close(self) -> None:
        """Close the connection: what is due will not come."""
        self._connection.close()
        due, self._due = self._due, deque()
        for each in due:
            if each.told is not None:
                each.told(psycopg.OperationalError("the connection was closed"))

    @contextlib.contextmanager
    def _piping(self) -> Iterator[None]:
        """Statements may be sent one behind the other; at the end all but what is due has been read."""
        with self._breaking():
            if not self._due:
                self._pg.enter_pipeline_mode()
            while self._due:
                due = self._due[0]
                came = self._read(len(due.expected) - len(due.came))
                due.came.extend(came)
                self._tell(self._due.popleft())
            yield
            if not self._due:
                self._pg.exit_pipeline_mode()

    @contextlib.contextmanager
    def _breaking(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Nobody knows what is still to come.
            self.close()
            raise

    def _send(self, bound: "_Bound") -> list[_Key | None]:
        """Send a statement without waiting; what will be read for it, a key where a statement is prepared."""
        statement, key, parameters, formats = bound
        name = self._names.get(key)
        if name is not None:
            self._pg.send_query_prepared(name, parameters, formats, Format.BINARY)
            return [None]
        used = self._used[key] = self._used.get(key, 0) + 1
        if not self._prepare or used <= PREPARE_AFTER:
            self._pg.send_query_params(statement.numbered, parameters, key[1], formats, Format.BINARY)
            return [None]
        name = self._names[key] = f"perdure_{len(self._names)}_{statement.name}".encode()
        self._pg.send_prepare(name, statement.numbered, key[1])
        self._pg.send_query_prepared(name, parameters, formats, Format.BINARY)
        return [key, None]

    def _fetch(self, expected: Sequence[_Key | None]) -> list[PGresult]:
        """The results of statements, without those of preparations."""
        return self._told(expected, self._read(len(expected)))

    def _read(self, count: int) -> list[PGresult]:
        """Wait for so many results, and the end behind them."""
        self._connection.wait(generators.send(self._pg))
        results = [self._next() for _ in range(count)]
        end = self._next()
        if end.status == ExecStatus.FATAL_ERROR:
            # The server's process has ended: what came before tells why, if anything does.
            told = next((each for each in results if each.status == ExecStatus.FATAL_ERROR), end)
            raise _lost(told)
        invariant(end.status == ExecStatus.PIPELINE_SYNC, "what travels together ends together")
        return results

    def _next(self) -> PGresult:
        came: list[PGresult] = self._connection.wait(generators.fetch_many(self._pg))
        if not came:
            raise psycopg.OperationalError(_CUT_OFF)
        return came[-1]

    def _told(self, expected: Sequence[_Key | None], came: Sequence[PGresult]) -> list[PGresult]:
        results = []
        for key, result in zip(expected, came, strict=True):
            if key is None:
                results.append(result)
            elif result.status not in _GOOD:
                self._names.pop(key, None)
                results.append(result)
        return results

    def _tell(self, due: _Due) -> None:
        results = self._told(due.expected, due.came)
        if due.told is not None:
            try:
                told: Answer | psycopg.Error = self._answer(results[0])
            except psycopg.Error as error:
                told = error
            due.told(told)

    def _answer(self, result: PGresult) -> Answer:
        """What a result says. Raises the driver's error for one that is none."""
        if result.status == ExecStatus.TUPLES_OK:
            self._loading.set_pgresult(result)
            rows = self._loading.load_rows(0, result.ntuples, tuple)
            return Answer(rows, result.command_status or b"", result.ntuples)
        if result.status == ExecStatus.COMMAND_OK:
            return Answer(None, result.command_status or b"", result.command_tuples or 0)
        raise errors.error_from_result(result)


def _lost(result: PGresult) -> psycopg.OperationalError:
    """That the connection has broken, by what came in the place of an end."""
    error = errors.error_from_result(result)
    return error if isinstance(error, psycopg.OperationalError) else psycopg.OperationalError(str(error) or _CUT_OFF)


class _Bound(NamedTuple):
    """A statement with its values as the server takes them."""

    statement: Statement
    key: _Key
    parameters: list[bytes | None]
    formats: list[Format]


def _bound(statement: Statement, values: Sequence[Any]) -> _Bound:
    """Numbers, truth values, bytes and lists travel as the server has them, the rest as text.

    Raises `psycopg.DataError`.
    """
    types: list[int] = []
    parameters: list[bytes | None] = []
    formats: list[Format] = []
    for value in values:
        kind, written, form = _written(value)
        types.append(kind)
        parameters.append(written)
        formats.append(form)
    return _Bound(statement, (statement.name, tuple(types)), parameters, formats)


def _written(value: Any) -> tuple[int, bytes | None, Format]:
    if value is None:
        return _UNSAID, None, Format.TEXT
    if isinstance(value, str):
        written = value.encode()
        if b"\x00" in written:
            raise psycopg.DataError("text cannot contain NUL")
        return _UNSAID, written, Format.TEXT
    if isinstance(value, bool):
        return _BOOL, b"\x01" if value else b"\x00", Format.BINARY
    if isinstance(value, int):
        try:
            return _INT8, _int8(value), Format.BINARY
        except struct.error as error:
            raise psycopg.DataError(f"{value} has no room in 64 bits") from error
    if isinstance(value, list):
        return _written_list(value)
    invariant(isinstance(value, bytes), "what is bound is text, a number, a truth value, bytes, a list or nothing")
    return _BYTES, value, Format.BINARY


def _written_list(values: list[Any]) -> tuple[int, bytes, Format]:
    """A list of texts, or of bytes, with something in it."""
    whole, each = (_TEXT_ARRAY, _TEXT) if isinstance(values[0], str) else (_BYTES_ARRAY, _BYTES)
    if each == _TEXT:
        if any("\x00" in value for value in values):
            raise psycopg.DataError("text cannot contain NUL")
        values = [value.encode() for value in values]
    parts = [part for value in values for part in (_size(len(value)), value)]
    return whole, b"".join((_array(1, 0, each, len(values), 1), *parts)), Format.BINARY
