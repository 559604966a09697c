"""Connections of callers: what is taken for one, and whether it is inside a transaction on this store's database."""

from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from perdure.errors import Misuse, invariant
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import Connector
from perdure.store.postgres.lending import AwaitedConnection, LentConnection
from perdure.store.postgres.transaction import Transaction


class Place(NamedTuple):
    """Which tables these are: two connections with the same place write the same rows.

    Names would not tell: a copy of a database has them too, and all that is stored in it.
    """

    server_start_us: int
    database: int
    table: int | None
    """`None` where perdure's tables are not to be seen."""


class CallerConnections:
    """Turns connections of callers into transactions on this store's database."""

    def __init__(self, connector: Connector, clock: StoreClock) -> None:
        self._connector = connector
        self._clock = clock
        self._own: Place | None = None
        self._place_statement = connector.dialect.statements["caller_place"]

    def within(self, connection: Any) -> Transaction:
        """The caller's open transaction at the store's now. It is neither committed nor rolled back here.

        Raises `Misuse` when the connection is no connection of psycopg, on another database, or outside a transaction.
        """
        lent = connection if isinstance(connection, LentConnection) else LentConnection(driver_connection(connection))
        _check_transaction(lent)
        [(*place, server_us)] = lent.run_together([(self._place_statement, ())])[0].rows or []
        self._check_place(Place(*place))
        return Transaction(lent, self._clock.now_us(server_us), time=self._clock, dialect=self._connector.dialect)

    def check(self, connection: psycopg.Connection[Any]) -> None:
        """Raises `Misuse` when a connection is on another database than the store's."""
        self._check_place(self._place_of(connection))

    def _check_place(self, theirs: Place) -> None:
        if theirs == self._own:
            return
        # The server may have been started anew since this store looked.
        self._own = self._look()
        if theirs == self._own:
            return
        facts = {"store": self._connector.place}
        if theirs.table is None:
            raise Misuse(
                f"perdure's tables are not to be seen on this connection: connect it to the store's own database, "
                f"{self._connector.place}, with the same search_path",
                **facts,
            )
        raise Misuse(
            f"the connection is on another database than the store, {self._connector.place}: what is written there "
            "would never run; open it on the store's own database",
            **facts,
        )

    def _look(self) -> Place:
        with self._connector.dial() as connection:
            return self._place_of(connection)

    def _place_of(self, connection: psycopg.Connection[Any]) -> Place:
        rows = connection.execute(self._place_statement.text).fetchall()
        invariant(len(rows) == 1, "a connection has one place")
        return Place(*rows[0][:3])


def driver_connection(connection: Any) -> psycopg.Connection[Any]:
    """The connection of psycopg beneath what a caller has. Raises `Misuse`."""
    if isinstance(connection, psycopg.Connection):
        return connection
    if isinstance(connection, psycopg.AsyncConnection) or _is_async_of_sqlalchemy(connection):
        raise Misuse(
            f"a {type(connection).__name__} has to be awaited: write `await app.submit(..., connection=...)` or "
            "`await ctx.settle_within_async(...)` on its event loop"
        )
    if hasattr(connection, "in_atomic_block"):
        return _of_django(connection)
    if hasattr(connection, "get_bind"):
        # A session of SQLAlchemy: this is its transaction's connection, and it knows from now on that it has one.
        connection = connection.connection()
    if hasattr(connection, "in_transaction") and hasattr(connection, "connection"):
        return _of_sqlalchemy(connection)
    raise _unknown(connection)


async def awaited_connection(connection: Any) -> psycopg.AsyncConnection[Any] | None:
    """The connection beneath, if it is one that has to be awaited. Raises `Misuse`."""
    if isinstance(connection, psycopg.AsyncConnection):
        return connection
    if not _is_async_of_sqlalchemy(connection):
        return None
    if hasattr(connection, "sync_session"):
        connection = await connection.connection()
    _check_begun(connection)
    raw = await connection.get_raw_connection()
    if not isinstance(raw.driver_connection, psycopg.AsyncConnection):
        raise _unknown(raw.driver_connection)
    return raw.driver_connection


def _is_async_of_sqlalchemy(connection: Any) -> bool:
    return hasattr(connection, "sync_session") or hasattr(connection, "get_raw_connection")


def _of_sqlalchemy(connection: Any) -> psycopg.Connection[Any]:
    _check_begun(connection)
    beneath = connection.connection.driver_connection
    if not isinstance(beneath, psycopg.Connection):
        raise _unknown(beneath)
    return beneath


def _check_begun(connection: Any) -> None:
    if not connection.in_transaction():
        # It would begin one on the driver's connection that SQLAlchemy does not know of, and never commit it.
        raise Misuse("the connection is outside a transaction: begin one (`with connection.begin():`) before")


def _of_django(connection: Any) -> psycopg.Connection[Any]:
    if not connection.in_atomic_block:
        raise Misuse("the connection is outside a transaction: put this into `with transaction.atomic():`")
    if connection.needs_rollback:
        raise _failed()
    beneath = connection.connection
    if not isinstance(beneath, psycopg.Connection):
        raise _unknown(beneath)
    return beneath


def _check_transaction(lent: LentConnection | AwaitedConnection) -> None:
    if lent.closed:
        raise Misuse("the connection is closed")
    if lent.status is TransactionStatus.INERROR:
        raise _failed()
    if lent.autocommit and lent.status is TransactionStatus.IDLE:
        raise Misuse(
            "the connection is outside a transaction, and commits each statement by itself: begin one "
            "(`with connection.transaction():`) before"
        )


def _failed() -> Misuse:
    return Misuse("the transaction on this connection has failed already: roll it back, then begin another")


def _unknown(connection: Any) -> Misuse:
    given = f"{type(connection).__module__.partition('.')[0]}.{type(connection).__name__}"
    return Misuse(
        "expected a connection of psycopg 3, a connection or session of SQLAlchemy over it (postgresql+psycopg), or "
        f"one of Django's connections over it, not {given}",
        given=given,
    )
