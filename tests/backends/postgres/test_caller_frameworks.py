"""Transactions of SQLAlchemy and of Django: what is submitted through them exists exactly if they commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from backends.postgres.crew import ids, task
from backends.postgres.opened import opened
from perdure.errors import Misuse
from perdure.store.postgres.store import PostgresStore
from skipping import skip


@pytest.fixture
async def store(postgres_database: str) -> AsyncIterator[PostgresStore]:
    """An empty store."""
    async with opened(postgres_database, inline=True) as made:
        yield made


def required(name: str) -> Any:
    """The module, or the test is left out."""
    try:
        return import_module(name)
    except ImportError:
        skip(f"{name.partition('.')[0]} is not installed")


@pytest.fixture
def fresh() -> Any:
    """Makes a task that nobody has."""
    made = ids()
    return lambda: task(made.new())


async def known(store: PostgresStore, *tasks: Any) -> list[bool]:
    return [await store.views.task("default", each.id) is not None for each in tasks]


@pytest.fixture
def url(postgres_database: str) -> str:
    """The database as SQLAlchemy is told of it."""
    return postgres_database.replace("postgresql://", "postgresql+psycopg://")


async def test_a_session_of_sqlalchemy(store: PostgresStore, url: str, fresh: Any) -> None:
    sqlalchemy, orm = required("sqlalchemy"), required("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(url)
    kept, gone, first = fresh(), fresh(), fresh()
    with orm.Session(engine) as session:
        store.caller.submit(session, [first])
        session.commit()
        session.execute(sqlalchemy.text("SELECT 1"))
        store.caller.submit(session, [kept])
        session.commit()
        store.caller.submit(session, [gone])
        session.rollback()
    scoped = orm.scoped_session(orm.sessionmaker(engine))
    by_scope = fresh()
    store.caller.submit(scoped, [by_scope])
    scoped.commit()
    scoped.remove()
    assert await known(store, first, kept, gone, by_scope) == [True, True, False, True]
    engine.dispose()


async def test_a_connection_of_sqlalchemy(store: PostgresStore, url: str, fresh: Any) -> None:
    sqlalchemy = required("sqlalchemy")
    engine = sqlalchemy.create_engine(url)
    kept, gone = fresh(), fresh()
    with engine.begin() as connection:
        store.caller.submit(connection, [kept])
    with engine.connect() as connection:
        with pytest.raises(Misuse, match="outside a transaction"):
            store.caller.submit(connection, [fresh()])
        with connection.begin() as transaction:
            store.caller.submit(connection, [gone])
            transaction.rollback()
    by_itself = engine.execution_options(isolation_level="AUTOCOMMIT")
    with by_itself.begin() as connection, pytest.raises(Misuse, match="commits each statement by itself"):
        store.caller.submit(connection, [fresh()])
    assert await known(store, kept, gone) == [True, False]
    engine.dispose()


async def test_another_database_of_sqlalchemy_is_refused(store: PostgresStore, fresh: Any) -> None:
    engine = required("sqlalchemy").create_engine("sqlite://")
    with engine.begin() as connection, pytest.raises(Misuse, match=r"not sqlite3\.Connection"):
        store.caller.submit(connection, [fresh()])
    engine.dispose()


async def test_awaited_connections_and_sessions_of_sqlalchemy(store: PostgresStore, url: str, fresh: Any) -> None:
    required("greenlet")
    sqlalchemy = required("sqlalchemy.ext.asyncio")
    engine = sqlalchemy.create_async_engine(url)
    tasks = [fresh() for _ in range(4)]

    async def lend(connection: Any, each: Any) -> None:
        await store.caller.lend(connection, lambda lent: store.caller.submit(lent, [each]))

    async with engine.begin() as connection:
        await lend(connection, tasks[0])
        with pytest.raises(Misuse, match="has to be awaited"):
            store.caller.submit(connection, [fresh()])
    async with engine.connect() as connection:
        with pytest.raises(Misuse, match="outside a transaction"):
            await lend(connection, fresh())
    async with sqlalchemy.AsyncSession(engine) as session:
        await lend(session, tasks[1])
        await session.commit()
        await lend(session, tasks[2])
        await session.rollback()
        async with session.begin():
            await lend(session, tasks[3])
    assert await known(store, *tasks) == [True, True, False, True]
    await engine.dispose()


async def test_an_atomic_block_of_django(store: PostgresStore, postgres_database: str, fresh: Any) -> None:
    django_db, transaction = required("django.db"), required("django.db.transaction")
    settings = required("django.conf").settings
    place = conninfo_to_dict(postgres_database)
    databases = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": place["dbname"],
            "USER": place["user"],
            "HOST": place["host"],
            "PORT": place["port"],
        },
        "file": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    }
    settings.configure(DATABASES=databases)
    required("django").setup()
    kept, gone, nested, deferred = fresh(), fresh(), fresh(), fresh()

    def work() -> None:
        connection, atomic = django_db.connection, transaction.atomic
        with pytest.raises(Misuse, match=r"transaction\.atomic"):
            store.caller.submit(connection, [fresh()])
        with atomic():
            store.caller.submit(connection, [kept])
            with suppress(ZeroDivisionError), atomic():
                store.caller.submit(connection, [nested])
                raise ZeroDivisionError
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM perdure_tasks")
                assert cursor.fetchone() == (1,)
        with suppress(ZeroDivisionError), atomic():
            store.caller.submit(connection, [gone])
            raise ZeroDivisionError
        with atomic():
            transaction.set_rollback(True)
            with pytest.raises(Misuse, match="failed already"):
                store.caller.submit(connection, [deferred])
        with atomic(using="file"), pytest.raises(Misuse, match=r"not sqlite3\.Connection|not django"):
            store.caller.submit(django_db.connections["file"], [fresh()])
        django_db.connections.close_all()

    # Django lets nothing of it be used where an event loop runs.
    await asyncio.to_thread(work)
    assert await known(store, kept, nested, gone) == [True, False, False]
