"""Where a server has few connections for a process, its threads share what there is."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from backends.postgres.opened import one, opened, operation, plain
from perdure.errors import StoreBusy
from perdure.store.postgres import lifeline

ALL = ("write", "claim", "renew", "act")
"""Operations by the names that send them to the four flushers."""
WAIT = 60


@pytest.fixture
def role(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    """The role `few`, which may have as many connections as a test says; yields an administrator's connection."""
    with plain(postgres_database) as admin:
        if one(admin, "SELECT 1 FROM pg_roles WHERE rolname = 'few'") is None:
            admin.execute("CREATE ROLE few LOGIN")
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO few")
        admin.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO few")
        yield admin
        admin.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM few")
        admin.execute("REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM few")


def limit(admin: psycopg.Connection[Any], connections: int) -> None:
    admin.execute(f"ALTER ROLE few CONNECTION LIMIT {connections}".encode())


async def do_everything(store: Any) -> None:
    """One of each kind of work, at once, and so long that none finds a connection that is idle meanwhile."""

    def work(tx: Any, items: list[Any]) -> list[Any]:
        tx.connection.execute("SELECT pg_sleep(0.5)")
        return items

    works = [store.writer.gather(operation(work, name), [name]) for name in ALL]
    reads = [store.ledger.now_us() for _ in range(4)]
    *answers, _, _, _, _ = await asyncio.gather(*works, *reads)
    assert answers == [[name] for name in ALL]


@pytest.mark.parametrize("connections", [1, 2, 5])
async def test_all_work_is_done_with_the_connections_that_there_are(
    role: psycopg.Connection[Any], postgres_database: str, connections: int, caplog: pytest.LogCaptureFixture
) -> None:
    limit(role, connections)
    with caplog.at_level(logging.WARNING, "perdure.store"):
        async with opened(postgres_database.replace("postgres@", "few@")) as store:
            for _ in range(3):
                await do_everything(store)
            mine = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'few'"
            assert one(role, mine) == connections
            assert ["no connection left" in notice for notice in store.notices()] == [True]
    assert "no connection left for 1 of this process's threads" in caplog.records[0].getMessage()


async def test_whoever_lacks_a_connection_has_one_again_when_there_are_more(
    role: psycopg.Connection[Any], postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifeline, "CROWDED_SECONDS", 0)
    limit(role, 1)
    async with opened(postgres_database.replace("postgres@", "few@")) as store:
        await do_everything(store)
        assert store.notices() != []
        limit(role, 20)
        # Who happens to find another's connection idle opens none of its own yet.
        async with asyncio.timeout(WAIT):
            while store.notices():
                await do_everything(store)
        assert one(role, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'few'") > 1


async def test_what_fails_on_a_shared_connection_fails_for_its_own_caller(
    role: psycopg.Connection[Any], postgres_database: str
) -> None:
    def fail(tx: Any, items: list[Any]) -> list[Any]:
        raise LookupError("on purpose")

    limit(role, 1)
    async with opened(postgres_database.replace("postgres@", "few@")) as store:
        with pytest.raises(LookupError):
            await store.writer.gather(operation(fail, "claim"), ["x"])
        await do_everything(store)


async def test_without_any_connection_the_store_is_busy(role: psycopg.Connection[Any], postgres_database: str) -> None:
    limit(role, 0)
    with pytest.raises(StoreBusy, match="no connection left"):
        async with opened(postgres_database.replace("postgres@", "few@"), patience=0.1):
            pass
