"""A migrated database for each test, a transaction in it, and sessions side by side."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.numeric import Int8Dumper

from backends.postgres.crew import Writer
from backends.postgres.racing import Beside, crew
from perdure.domain.limits import SECOND_US
from perdure.store.postgres.connecting import ISOLATIONS
from perdure.store.postgres.transaction import Transaction

NOW_US = 1_800_000_000 * SECOND_US


@pytest.fixture
def tx(postgres_database: str) -> Iterator[Transaction]:
    """A transaction at `NOW_US` in an empty store, rolled back at the end. `tx.connection` takes plain SQL."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.execute("BEGIN")
        yield Transaction(connection, NOW_US)


@pytest.fixture(params=ISOLATIONS)
def writers(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[list[Writer]]:
    """Sessions of one database."""
    with crew(postgres_database, request.param) as made:
        yield made


@pytest.fixture
def beside(postgres_database: str) -> Iterator[Beside]:
    """Threads beside."""
    made = Beside(postgres_database)
    yield made
    made.close()
