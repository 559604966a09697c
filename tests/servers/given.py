"""A database that somebody else's server has, which the suite may empty: CockroachDB's, where there is one."""

import contextlib
import functools
import os
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from conformance import postgres_rows
from servers.databases import OTHERS, emptying, migrate, tables

COCKROACH_URL = "PERDURE_TEST_COCKROACH_URL"
"""Names it, as cockroachdb://user@host:port/database. What is in it goes."""


class GivenDatabase:
    """One database for one test at a time: made new at first, and emptied after each."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.plain_url = url.replace("cockroachdb:", "postgresql:", 1)
        with psycopg.connect(self.plain_url, autocommit=True) as connection:
            for table in sorted(name for name in tables(connection) if name.startswith(postgres_rows.PREFIX)):
                connection.execute(SQL("DROP TABLE {} CASCADE").format(Identifier("public", table)))
            for sequence in ("perdure_seq", "perdure_front"):
                connection.execute(SQL("DROP SEQUENCE IF EXISTS {}").format(Identifier("public", sequence)))
            connection.execute("DROP SCHEMA IF EXISTS plain CASCADE")
        migrate(url)
        self.looker: psycopg.Connection[Any] = postgres_rows.connect(self.plain_url)
        self._emptying = emptying(self.looker, tables(self.looker))

    def empty(self) -> None:
        """Bring it back to how it was made; what a test has left open is ended where that is possible."""
        with contextlib.suppress(psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFunction):
            self.looker.execute(OTHERS, [self.looker.info.dbname])
        self.looker.execute("SET lock_timeout = '10s'")
        self.looker.execute(self._emptying)


@functools.cache
def given() -> GivenDatabase:
    """The database that the environment names."""
    return GivenDatabase(os.environ[COCKROACH_URL])
