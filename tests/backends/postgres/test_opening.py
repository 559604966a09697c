"""What must be true of the address, the server and the database; each refusal says what to do, and never a password."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from psycopg.sql import SQL, Identifier

from backends.postgres.opened import one, opened, plain
from perdure.errors import (
    Misuse,
    PerdureError,
    SchemaTooNew,
    SchemaTooOld,
    StoreBusy,
    StoreUnreachable,
    StoreUnusable,
)
from perdure.store.postgres import connecting
from perdure.store.postgres import session as session_module
from perdure.store.postgres.connecting import READ_COMMITTED, Address, Connector
from perdure.store.postgres.schema import known_steps, read_status
from perdure.store.postgres.session import Limits, ServerFacts
from perdure.store.postgres.transaction import Transaction

if TYPE_CHECKING:
    from servers.databases import Databases

SECRET = "not-that-one"


async def refusal(url: str, kind: type[PerdureError], **options: object) -> str:
    """What opening a store there says."""
    with pytest.raises(kind) as caught:
        async with opened(url, patience=0, **options):
            pass
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.fields)
    return str(caught.value)


def blank(databases: "Databases") -> str:
    """A database without any schema."""
    return databases.server.url(databases.make("template1"))


async def test_a_wrong_password_names_the_user_and_where_passwords_come_from(
    postgres_databases: "Databases", postgres_database: str
) -> None:
    with plain(postgres_database) as admin:
        admin.execute("DROP ROLE IF EXISTS guarded")
        admin.execute("CREATE ROLE guarded LOGIN PASSWORD 'the-right-one'")
    url = postgres_database.replace("postgres@", f"guarded:{SECRET}@")
    assert "refuses the password of guarded" in await refusal(url, StoreUnreachable)


async def test_a_database_that_is_not_there_is_named(postgres_databases: "Databases") -> None:
    assert "createdb nowhere" in await refusal(postgres_databases.server.url("nowhere"), StoreUnreachable)


async def test_a_user_that_is_not_there_is_named(postgres_database: str) -> None:
    said = await refusal(postgres_database.replace("postgres@", "stranger@"), StoreUnreachable)
    assert "knows no user stranger" in said


async def test_a_server_that_does_not_run_is_told_of() -> None:
    assert "is the server running" in await refusal(f"postgresql://me:{SECRET}@127.0.0.1:1/shop", StoreUnreachable)


async def test_a_server_without_a_free_connection_is_busy(postgres_databases: "Databases") -> None:
    url = blank(postgres_databases)
    with plain(url) as admin:
        admin.execute("DROP ROLE IF EXISTS latecomer")
        admin.execute("CREATE ROLE latecomer LOGIN")
        admin.execute(SQL("ALTER DATABASE {} CONNECTION LIMIT 0").format(Identifier(admin.info.dbname)))
    assert "no connection left" in await refusal(url.replace("postgres@", "latecomer@"), StoreBusy)


async def test_a_url_that_cannot_be_read_is_refused_without_being_quoted() -> None:
    said = await refusal(f"postgresql://me:{SECRET}/x@host:port:1/shop", Misuse)
    assert "postgresql://user:password@host:port/database" in said


async def test_an_old_server_is_refused(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "SERVER_VERSION_MIN", 99)
    assert "perdure needs 99 or later: upgrade the server" in await refusal(postgres_database, StoreUnusable)


async def test_a_database_that_cannot_hold_every_character_is_refused(postgres_databases: "Databases") -> None:
    with plain(postgres_databases.server.url("postgres")) as admin:
        admin.execute("DROP DATABASE IF EXISTS narrow")
        admin.execute("CREATE DATABASE narrow TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    said = await refusal(postgres_databases.server.url("narrow"), StoreUnusable)
    assert "with ENCODING 'UTF8'" in said


async def test_an_isolation_that_there_is_not_is_refused(postgres_database: str) -> None:
    assert "serializable" in await refusal(postgres_database, Misuse, isolation="chaos")


async def test_a_missing_schema_is_told_of_where_it_is_not_to_be_made(postgres_databases: "Databases") -> None:
    url = blank(postgres_databases)
    assert "perdure db migrate" in await refusal(url, SchemaTooOld, migrate=False)
    assert [step.applied_us for step in read_status(url)] == [None for _ in known_steps()]


async def test_a_schema_of_a_later_perdure_is_left_alone(postgres_database: str) -> None:
    later = known_steps()[-1].number + 1
    with plain(postgres_database) as admin:
        admin.execute("INSERT INTO perdure_migrations VALUES (%s, 'from_the_future', 1)", [later])
    assert f"has schema {later}" in await refusal(postgres_database, SchemaTooNew)
    with pytest.raises(SchemaTooNew):
        read_status(postgres_database)


async def test_tables_of_somebody_else_by_our_names_are_left_alone(postgres_databases: "Databases") -> None:
    url = blank(postgres_databases)
    with plain(url) as admin:
        admin.execute("CREATE TABLE perdure_tasks (mine text)")
    assert "use a database that holds nothing else by these names" in await refusal(url, StoreUnusable)
    with plain(url) as admin:
        assert one(admin, "SELECT to_regclass('perdure_migrations')::text") is None


async def test_processes_that_migrate_at_once_take_each_step_once(postgres_databases: "Databases") -> None:
    url = blank(postgres_databases)

    async def open_and_look() -> list[int]:
        async with opened(url) as store:
            return [step.number for step in await store.schema.status() if step.applied_us is not None]

    numbers = [step.number for step in known_steps()]
    assert await asyncio.gather(*(open_and_look() for _ in range(4))) == [numbers] * 4


async def test_a_current_schema_needs_no_right_to_make_tables(postgres_database: str) -> None:
    with plain(postgres_database) as admin:
        if one(admin, "SELECT 1 FROM pg_roles WHERE rolname = 'modest'") is None:
            admin.execute("CREATE ROLE modest LOGIN")
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO modest")
        admin.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO modest")
    async with opened(postgres_database.replace("postgres@", "modest@")) as store:
        assert await store.schema.migrate() == []
        await store.definitions.put("default", "queue", "q", "{}", "bob")
        assert len(await store.definitions.list("default", "queue")) == 1
    with plain(postgres_database) as admin:
        admin.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM modest")
    assert "grant it" in await refusal(postgres_database.replace("postgres@", "modest@"), StoreUnusable)


def test_behind_a_pooler_a_session_keeps_nothing_between_transactions(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A pooler names a process at the connection that is not the one which answers.
    monkeypatch.setattr(session_module, "server_facts", lambda *asked: ServerFacts(0, 1))
    names = ("lock_timeout", "statement_timeout", "synchronous_commit", "enable_seqscan", "plan_cache_mode")
    before = ["0", "0", "on", "on", "auto"]
    session = Connector(Address(postgres_database), Limits(1_000, 2_000, 3_000), READ_COMMITTED).connect()

    def look() -> list[str]:
        return [one(session.connection, f"SELECT current_setting('{name}')") for name in names]

    assert session.pooled
    session.begin(durable=False)
    assert look()[:4] == ["1s", "2s", "off", "off"]
    session.commit()
    assert look() == before
    session.begin_reading()
    assert look()[1] == "3s"
    session.roll_back()
    assert look() == before
    for _ in range(10):
        session.begin(durable=True)
        Transaction(session.connection, 1).value("server_noted")
        session.commit()
    assert one(session.connection, "SELECT count(*) FROM pg_prepared_statements") == 0
    session.close()


async def test_a_write_that_must_last_waits_for_the_disk_whatever_the_database_says(postgres_database: str) -> None:
    with plain(postgres_database) as admin:
        name = Identifier(admin.info.dbname)
        admin.execute(SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
        session = Connector(Address(postgres_database), Limits(1_000, 1_000, 1_000), READ_COMMITTED).connect()
        for durable, waits in ((True, "on"), (False, "off")):
            session.begin(durable=durable)
            assert one(session.connection, "SELECT current_setting('synchronous_commit')") == waits
            session.commit()
        session.close()
        admin.execute(SQL("ALTER DATABASE {} RESET synchronous_commit").format(name))


async def test_sessions_say_whose_they_are(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        await store.ledger.now_us()
        with plain(postgres_database) as admin:
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
            assert one(admin, query, "perdure") == 1
