"""The roles that the page on operating shows are enough, and one that may not create tables is told what to do."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg
import pytest

from conformance.making import FAILED, World
from conformance.stores import STORES, ManualClock
from perdure.errors import SchemaTooOld
from perdure.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from servers.databases import Databases

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operating_postgres.md"
GRANTS = re.compile(r"^```sql roles\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Addresses(NamedTuple):
    """One database, as two roles see it."""

    owner: str
    app: str


@pytest.fixture
def granted(postgres_databases: "Databases") -> Iterator[Addresses]:
    """A database without a schema, and the two roles of the page."""
    server, name = postgres_databases.server, postgres_databases.make("template1")
    found = GRANTS.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    with psycopg.connect(server.url(name), autocommit=True) as connection:
        connection.execute(found[1])
        yield Addresses(server.url(name, "perdure_owner"), server.url(name, "perdure_app"))
        for role in ("perdure_app", "perdure_owner"):
            connection.execute(f"DROP OWNED BY {role} CASCADE")
            connection.execute(f"DROP ROLE {role}")


async def migrated(granted: Addresses) -> None:
    await (await PostgresStore.open(granted.owner, inline=True)).close()


async def test_a_role_that_may_not_create_tables_is_told_who_may(granted: Addresses) -> None:
    with pytest.raises(SchemaTooOld, match="as a role that may create tables"):
        await PostgresStore.open(granted.app, inline=True)
    await migrated(granted)
    await (await PostgresStore.open(granted.app, inline=True)).close()


async def test_what_is_granted_is_enough_for_everything_and_no_more(granted: Addresses) -> None:
    await migrated(granted)
    clock = ManualClock()
    store = await PostgresStore.open(granted.app, clock=clock, inline=True)
    try:
        world = World(store, clock, STORES["postgres"], Path())
        await world.worker()
        family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"]})
        first = await world.claim_one()
        await world.start(first)
        await world.finish(first)
        await world.finish(await world.claim_one(), settlement=FAILED)
        await world.cascade()
        await world.redrive(family["b"])
        lost = await world.claim_one()
        world.advance(3600)
        await world.sweep()
        await world.cancel(lost.hold.task_id)
        assert (await world.views.overview("default")).tasks == 3
    finally:
        await store.close()
    with (
        psycopg.connect(granted.app, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("CREATE TABLE another (x integer)")
    with (
        psycopg.connect(granted.app, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("TRUNCATE perdure_tasks")
