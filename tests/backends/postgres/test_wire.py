"""Statements that travel together: each has its answer, and what goes wrong with one is told as if it came alone."""

import contextlib
import select
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors, generators
from psycopg.pq import ExecStatus

from perdure.store.postgres.statements import parse
from perdure.store.postgres.wire import PREPARE_AFTER, Wire

ECHO = parse("echo", "SELECT %(number)s::bigint, %(text)s::text, %(flag)s::boolean, %(bytes)s::bytea")
DIVIDE = parse("divide", "SELECT 1 / %(number)s::bigint")
MAKE = parse("make", "CREATE TABLE half_done ()")
VALUES = (5, "ä", True, b"\x00\xff")
ECHO_LISTS = parse("echo_lists", "SELECT %(texts)s::text[], %(bytes)s::bytea[]")


@pytest.fixture
def connection(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def test_values_come_back_as_they_went(connection: psycopg.Connection[Any]) -> None:
    wire = Wire(connection, prepare=True)
    for values in (VALUES, (None, None, None, None)):
        for _ in range(PREPARE_AFTER + 2):
            (answer,) = wire.run_together([(ECHO, values)])
            assert answer.rows == [values]
    prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'perdure_%'").fetchone()
    assert prepared == (2,)


def test_lists_come_back_as_they_went(connection: psycopg.Connection[Any]) -> None:
    wire = Wire(connection, prepare=True)
    for texts, data in ((["a", "", 'ä,{}"\\', "NULL"], [b"\x00\xff", b""]), (["one"], [b"1"] * 2_000)):
        for _ in range(PREPARE_AFTER + 2):
            (answer,) = wire.run_together([(ECHO_LISTS, (texts, data))])
            assert answer.rows == [(texts, data)]
    with pytest.raises(psycopg.DataError):
        wire.run_together([(ECHO_LISTS, (["a", "b\x00"], [b""]))])
    assert wire.run_together([(ECHO, VALUES)])[0].rows == [VALUES]


def test_after_a_statement_that_fails_nothing_later_is_run_and_the_connection_goes_on(
    connection: psycopg.Connection[Any],
) -> None:
    wire = Wire(connection, prepare=True)
    for _ in range(PREPARE_AFTER + 2):
        with pytest.raises(errors.DivisionByZero):
            wire.run_together([(ECHO, VALUES), (DIVIDE, (0,)), (MAKE, ())])
    assert wire.run_together([(DIVIDE, (1,))])[0].rows == [(1,)]
    assert connection.execute("SELECT to_regclass('half_done')").fetchone() == (None,)


@pytest.mark.parametrize("value", ["a\x00b", 2**63])
def test_what_the_server_has_no_room_for_is_refused_before_anything_is_sent(
    connection: psycopg.Connection[Any], value: object
) -> None:
    wire = Wire(connection)
    with pytest.raises(psycopg.DataError):
        wire.run_together([(ECHO, (value, value, True, b""))])
    assert wire.run_together([(ECHO, VALUES)])[0].rows == [VALUES]


def test_what_goes_wrong_with_a_later_one_that_nobody_waits_for_is_nobodys_failure(
    connection: psycopg.Connection[Any],
) -> None:
    wire = Wire(connection)
    wire.run_before(MAKE, (DIVIDE, (0,)))
    assert wire.run_together([(DIVIDE, (1,))])[0].rows == [(1,)]
    assert connection.execute("SELECT to_regclass('half_done') IS NOT NULL").fetchone() == (True,)
    with pytest.raises(errors.DuplicateTable):
        wire.run_before(MAKE, (DIVIDE, (1,)))
    assert wire.run_together([(DIVIDE, (1,))])[0].rows == [(1,)]


READS_MAX = 10


def nothing() -> None:
    """What has nothing behind it."""


def looked(wire: Wire, told: list[Any]) -> None:
    """Look until something is told."""
    while not told:
        wire.look()


def test_what_is_sent_is_told_by_a_look_or_by_whoever_uses_the_wire_next(connection: psycopg.Connection[Any]) -> None:
    wire = Wire(connection, prepare=True)
    for _ in range(PREPARE_AFTER + 2):
        first: list[Any] = []
        wire.send((ECHO, VALUES), lambda: (DIVIDE, (0,)), first.append)
        looked(wire, first)
        second: list[Any] = []
        wire.send((ECHO, VALUES), nothing, second.append)
        assert wire.run_together([(DIVIDE, (1,))])[0].rows == [(1,)]
        third: list[Any] = []
        wire.send((DIVIDE, (0,)), nothing, third.append)
        wire.settle()
        assert [first[0].rows, second[0].rows] == [[VALUES]] * 2
        assert [type(each) for each in third] == [errors.DivisionByZero]


def test_what_is_sent_is_told_when_the_connection_goes(connection: psycopg.Connection[Any]) -> None:
    wire = Wire(connection)
    told: list[Any] = []
    wire.send((ECHO, VALUES), nothing, told.append)
    wire.close()
    wire.send((ECHO, VALUES), nothing, told.append)
    assert [type(each) for each in told] == [psycopg.OperationalError] * 2


def test_what_goes_behind_is_not_asked_for_where_nothing_can_be_sent(connection: psycopg.Connection[Any]) -> None:
    wire = Wire(connection)
    asked: list[None] = []
    told: list[Any] = []
    with pytest.raises(psycopg.DataError):
        wire.send((ECHO, ("a\x00b", "", True, b"")), lambda: asked.append(None), told.append)
    assert (asked, told) == ([], [])
    wire.send((ECHO, VALUES), lambda: asked.append(None), told.append)
    wire.settle()
    assert (asked, [each.rows for each in told]) == ([None], [[VALUES]])


def test_a_look_gives_up_where_somebody_else_has_read_the_answer(connection: psycopg.Connection[Any]) -> None:
    wire = Wire(connection)
    told: list[Any] = []
    wire.send((ECHO, VALUES), nothing, told.append)
    for _ in range(READS_MAX):
        read = connection.pgconn.get_result()
        if read is not None and read.status == ExecStatus.PIPELINE_SYNC:
            break
    with pytest.raises(psycopg.OperationalError, match="ended before"):
        wire.look()
    assert [type(each) for each in told] == [psycopg.OperationalError]
    assert connection.closed


ENDED = parse("ended", "SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
def test_a_server_process_that_ends_is_told_as_a_connection_that_broke(
    connection: psycopg.Connection[Any], place: int
) -> None:
    wire = Wire(connection)
    queries: list[Any] = [(ECHO, VALUES), (DIVIDE, (1,))]
    queries.insert(place, (ENDED, ()))
    with pytest.raises(psycopg.OperationalError):
        wire.run_together(queries)


def test_a_server_process_that_has_ended_meanwhile_is_told_as_a_connection_that_broke(
    connection: psycopg.Connection[Any], postgres_database: str
) -> None:
    wire = Wire(connection)
    with psycopg.connect(postgres_database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        wire.run_together([(ECHO, VALUES), (DIVIDE, (1,))])


def test_what_was_sent_to_a_server_process_that_ends_is_told_so_by_a_look(connection: psycopg.Connection[Any]) -> None:
    wire, came = Wire(connection), list[object]()
    wire.send((ENDED, ()), lambda: (ECHO, VALUES), came.append)
    with contextlib.suppress(psycopg.OperationalError):
        for _ in range(100):
            select.select([connection.fileno()], [], [], 0.1)
            wire.look()
    assert [isinstance(each, psycopg.OperationalError) for each in came] == [True]


@pytest.mark.parametrize("due", [False, True], ids=["asked", "sent"])
@pytest.mark.parametrize("cut", ["fatal", "nothing"])
def test_an_end_that_does_not_come_is_told_as_a_connection_that_broke(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, cut: str, due: bool
) -> None:
    wire, told = Wire(connection), list[Any]()
    fatal = connection.pgconn.make_empty_result(ExecStatus.FATAL_ERROR)
    fetch = generators.fetch_many

    def cut_off(pgconn: Any) -> Any:
        came = yield from fetch(pgconn)
        if came and came[-1].status == ExecStatus.PIPELINE_SYNC:
            return [fatal] if cut == "fatal" else []
        return came

    monkeypatch.setattr(generators, "fetch_many", cut_off)
    if due:
        wire.send((ECHO, VALUES), nothing, told.append)
    with pytest.raises(psycopg.OperationalError):
        wire.run_together([(ECHO, VALUES)])
    assert [type(each) for each in told] == [psycopg.OperationalError] * due
