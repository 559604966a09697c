"""By which way hints travel: the store's own, one past its pooler, or none."""

from typing import Any

import psycopg

from perdure.errors import Misuse, Unavailable
from perdure.store.postgres.caller_connection import CallerConnections
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import Address, Connector

NO_HINTS = "off"


class Talker:
    """Dials for hints, on the store's own connection or past its pooler."""

    def __init__(self, store: Connector, direct: Connector | None) -> None:
        self._way = direct or store
        self._check = CallerConnections(store, StoreClock(None)).check if direct is not None else None

    def dial(self) -> psycopg.Connection[Any]:
        """A connection on the store's database. Raises `Misuse` when it is another one, and as `Connector.dial`."""
        connection = self._way.dial()
        try:
            if self._check is not None:
                self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def talker_of(connector: Connector, hints: str | None) -> Talker | None:
    """Who dials for hints: `hints` is a URL past the pooler, `NO_HINTS`, or `None`.

    Raises `Misuse` for a URL that cannot be read.
    """
    if hints == NO_HINTS:
        return None
    if hints is None:
        return Talker(connector, None)
    try:
        address = Address(hints)
    except Misuse as error:
        raise Misuse(f"hints: {error.message}", field="hints") from error
    return Talker(connector, Connector(address, connector.limits, connector.isolation))


def refuse_another_database(talker: Talker | None) -> None:
    """Raises `Misuse` when hints would travel by another database than the store's. One that is away may come back."""
    if talker is None:
        return
    try:
        talker.dial().close()
    except Unavailable:
        return
