"""By which way hints travel: the store's own, one past its pooler, or none."""

import contextlib
from typing import Any

import psycopg

from perdure.errors import Misuse, Unavailable
from perdure.store.postgres.caller_connection import CallerConnections
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import Address, Connector
from perdure.store.postgres.faults import translate
from perdure.store.postgres.session import server_facts

NO_HINTS = "off"


class Talker:
    """Dials for hints, on the store's own connection or past its pooler."""

    def __init__(self, store: Connector, direct: Connector | None) -> None:
        self._way = direct or store
        self._check = CallerConnections(store, StoreClock(None)).check if direct is not None else None

    def dial(self) -> tuple[psycopg.Connection[Any], bool]:
        """A connection on the store's database, and whether a pooler is before it.

        Raises `Misuse` when it is another database, and as `Connector.dial`.
        """
        connection = self._way.dial()
        try:
            if self._check is not None:
                self._check(connection)
            return connection, server_facts(connection, self._way.dialect).backend != connection.info.backend_pid
        except psycopg.Error as error:
            connection.close()
            raise translate(error, self._way.place) from error
        except BaseException:
            connection.close()
            raise

    def refuse_another_database(self) -> None:
        """Raises `Misuse` when hints would travel by another database. One that is away now may come back."""
        if self._check is not None:
            with contextlib.suppress(Unavailable):
                self.dial()[0].close()


def talker_of(connector: Connector, hints: str | None) -> Talker | None:
    """Who dials for hints: `hints` is a URL past the pooler, `NO_HINTS`, or `None`.

    Raises `Misuse` for a URL that cannot be read.
    """
    if hints == NO_HINTS or not connector.dialect.hints:
        return None
    if hints is None:
        return Talker(connector, None)
    try:
        address = Address(hints)
    except Misuse as error:
        raise Misuse(f"hints: {error.message}", field="hints") from error
    return Talker(connector, Connector(address, connector.limits, connector.isolation))
