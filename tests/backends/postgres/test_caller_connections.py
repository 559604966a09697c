"""Connections of callers: which are taken, what is left of them, and why the others are refused."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from backends.postgres.crew import Writer, task
from backends.postgres.opened import one, opened, plain
from backends.postgres.racing import Beside, answer, crew
from perdure.ambient import Ids
from perdure.domain.settlement import Receipt
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import Invalid, LeaseLost, Misuse, StoreBusy
from perdure.store.ledger import Submitted
from perdure.store.postgres import caller, submission
from perdure.store.postgres.lifeline import RETRIES_MAX
from perdure.store.postgres.store import PostgresStore

RECEIPT = Receipt("", False, Body(b'"kept"'), "kept")


@pytest.fixture
async def store(postgres_database: str) -> AsyncIterator[PostgresStore]:
    """An empty store."""
    async with opened(postgres_database, inline=True) as made:
        yield made


@pytest.fixture
def writers(postgres_database: str) -> Iterator[list[Writer]]:
    """Sessions of the same database."""
    with crew(postgres_database, "read committed") as made:
        yield made


@pytest.fixture
def own(store: PostgresStore, postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    """A caller's connection, as psycopg makes it, on a table of the caller's."""
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE TABLE orders (item text)")
        connection.commit()
        yield connection
        connection.rollback()


@pytest.fixture
def ids(writers: list[Writer]) -> Ids:
    """Ids for tasks."""
    return writers[0].ids


async def known(store: PostgresStore, id: str) -> bool:
    return await store.views.task("default", id) is not None


async def test_a_task_exists_exactly_if_the_transaction_commits(
    store: PostgresStore, own: psycopg.Connection[Any], ids: Ids
) -> None:
    kept, gone = task(ids.new()), task(ids.new())
    own.execute("INSERT INTO orders VALUES ('lamp')")
    assert store.caller.submit(own, [kept]) == [Submitted(kept.id, TaskState.PENDING, False)]
    assert not await known(store, kept.id)
    own.commit()
    own.execute("INSERT INTO orders VALUES ('desk')")
    store.caller.submit(own, [gone])
    own.rollback()
    assert (await known(store, kept.id), await known(store, gone.id)) == (True, False)
    assert own.execute("SELECT item FROM orders").fetchall() == [("lamp",)]


async def test_a_block_of_a_connection_that_commits_by_itself_is_a_transaction(
    store: PostgresStore, own: psycopg.Connection[Any], ids: Ids
) -> None:
    own.autocommit = True
    kept = task(ids.new())
    with pytest.raises(Misuse, match="commits each statement by itself"):
        store.caller.submit(own, [kept])
    with own.transaction():
        store.caller.submit(own, [kept])
        assert not await known(store, kept.id)
    assert await known(store, kept.id)


async def test_the_callers_session_stays_as_it_is(store: PostgresStore, postgres_database: str, ids: Ids) -> None:
    settings = "SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'transaction%%' ORDER BY name"
    with psycopg.connect(postgres_database, row_factory=dict_row, prepare_threshold=0) as connection:
        connection.prepare_threshold = None
        before = connection.execute(settings).fetchall()
        connection.prepare_threshold = 0
        for _ in range(10):
            store.caller.submit(connection, [task(ids.new())])
        connection.prepare_threshold = None
        assert connection.info.transaction_status is TransactionStatus.INTRANS
        assert connection.execute("SELECT name FROM pg_prepared_statements").fetchall() == []
        assert connection.execute(settings).fetchall() == before
        assert connection.execute("SELECT count(*) FROM perdure_tasks").fetchone() == {"count": 10}
        connection.rollback()


async def test_what_is_refused_leaves_the_transaction_as_it_was(
    store: PostgresStore, own: psycopg.Connection[Any], ids: Ids
) -> None:
    own.execute("INSERT INTO orders VALUES ('lamp')")
    with pytest.raises(Invalid, match="refused the values"):
        store.caller.submit(own, [task(ids.new()), task(ids.new(), initiator="a\0b")])
    kept = task(ids.new())
    store.caller.submit(own, [kept])
    own.commit()
    assert await known(store, kept.id)
    assert own.execute("SELECT (SELECT count(*) FROM perdure_tasks), (SELECT count(*) FROM orders)").fetchall() == [
        (1, 1)
    ]


async def test_another_database_is_refused(
    store: PostgresStore, postgres_databases: Any, postgres_database: str, ids: Ids
) -> None:
    copy = postgres_databases.take()
    bare = postgres_databases.server.url("postgres")
    try:
        for url, why in ((copy, "another database"), (bare, "not to be seen")):
            with psycopg.connect(url) as other, pytest.raises(Misuse, match=why):
                store.caller.submit(other, [task(ids.new())])
    finally:
        postgres_databases.give_back(copy)


async def test_other_schemas_of_the_same_database_are_refused(
    store: PostgresStore, own: psycopg.Connection[Any], ids: Ids
) -> None:
    own.execute("SET LOCAL search_path = pg_catalog")
    with pytest.raises(Misuse, match="search_path"):
        store.caller.submit(own, [task(ids.new())])


async def test_a_transaction_that_has_failed_and_a_closed_connection_are_refused(
    store: PostgresStore, own: psycopg.Connection[Any], postgres_database: str, ids: Ids
) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        own.execute("SELECT 1 / 0")
    with pytest.raises(Misuse, match="failed already"):
        store.caller.submit(own, [task(ids.new())])
    closed = psycopg.connect(postgres_database)
    closed.close()
    with pytest.raises(Misuse, match="closed"):
        store.caller.submit(closed, [task(ids.new())])


@pytest.mark.parametrize("given", ["perdure", object(), None])
async def test_what_is_no_connection_is_refused(store: PostgresStore, ids: Ids, given: Any) -> None:
    for refused in (lambda: store.caller.submit(given, [task(ids.new())]),):
        with pytest.raises(Misuse, match="expected a connection of psycopg 3"):
            refused()
    with pytest.raises(Misuse, match="expected a connection of psycopg 3"):
        await store.caller.lend(given, lambda lent: store.caller.submit(lent, []))


async def test_a_key_that_another_transaction_uses_is_waited_for(
    store: PostgresStore, own: psycopg.Connection[Any], writers: list[Writer], postgres_database: str
) -> None:
    def keyed(writer: Writer) -> Any:
        return writer.tasks(1, idempotency_key="k", request_hash="h")

    first = writers[0].begin()
    (made,) = submission.submit(first, keyed(writers[0]), writers[0].lanes)
    beside = Beside(postgres_database)
    own.execute("INSERT INTO orders VALUES ('lamp')")
    waiting = beside.pool.submit(store.caller.submit, own, keyed(writers[1]))
    beside.until_held_up(waiting)
    writers[0].commit(first)
    assert answer(waiting) == [Submitted(made.id, TaskState.QUEUED, True)]
    own.commit()
    assert own.execute("SELECT count(*) FROM perdure_tasks").fetchone() == (1,)
    beside.close()


async def test_a_lost_attempt_gets_no_receipt_and_leaves_the_transaction(
    store: PostgresStore, own: psycopg.Connection[Any], writers: list[Writer]
) -> None:
    writers[0].submit(writers[0].tasks(1))
    (lease,) = writers[0].claim(1)
    with pytest.raises(LeaseLost):
        store.caller.settle(own, lease.hold._replace(token="another"), RECEIPT)
    store.caller.settle(own, lease.hold, RECEIPT)
    assert own.info.transaction_status is TransactionStatus.INTRANS
    assert not await store.ledger.receipt_known(lease.hold)
    own.commit()
    assert await store.ledger.receipt_known(lease.hold)


async def test_a_submit_that_others_are_always_ahead_of_is_given_up_and_leaves_the_transaction(
    store: PostgresStore, own: psycopg.Connection[Any], ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []

    def collide(*given: Any, **named: Any) -> Any:
        rounds.append(1)
        raise submission.collided("another transaction has taken an idempotency key meanwhile")

    own.execute("INSERT INTO orders VALUES ('lamp')")
    with monkeypatch.context() as patched:
        patched.setattr(caller, "submit", collide)
        with pytest.raises(StoreBusy, match="smaller batches"):
            store.caller.submit(own, [task(ids.new())])
    assert len(rounds) == RETRIES_MAX + 1
    kept = task(ids.new())
    store.caller.submit(own, [kept])
    own.commit()
    assert await known(store, kept.id)


# Awaited connections


@contextmanager
def ticking() -> Iterator[list[int]]:
    """Counts how often the event loop comes round."""
    ticks = [0]
    loop = asyncio.get_running_loop()

    def tick() -> None:
        ticks[0] += 1
        handle[0] = loop.call_later(0.001, tick)

    handle = [loop.call_soon(tick)]
    yield ticks
    handle[0].cancel()


async def test_an_awaited_connection_is_lent_to_the_store(
    store: PostgresStore, postgres_database: str, ids: Ids
) -> None:
    kept, gone = task(ids.new()), task(ids.new())
    async with await psycopg.AsyncConnection.connect(postgres_database, row_factory=dict_row) as connection:
        for each, end in ((kept, connection.commit), (gone, connection.rollback)):
            answers = await store.caller.lend(connection, lambda lent, each=each: store.caller.submit(lent, [each]))
            assert answers == [Submitted(each.id, TaskState.PENDING, False)]
            await end()
        with pytest.raises(Misuse, match="has to be awaited"):
            store.caller.submit(connection, [task(ids.new())])
    assert (await known(store, kept.id), await known(store, gone.id)) == (True, False)


@pytest.mark.parametrize("awaited", [True, False])
async def test_the_event_loop_goes_on_while_a_lent_connection_waits(
    store: PostgresStore, writers: list[Writer], postgres_database: str, awaited: bool
) -> None:
    holder = writers[0].begin()
    submission.submit(holder, writers[0].tasks(1, idempotency_key="k", request_hash="h"), writers[0].lanes)
    tasks = writers[1].tasks(1, idempotency_key="k", request_hash="h")
    connection: Any
    if awaited:
        connection = await psycopg.AsyncConnection.connect(postgres_database)
    else:
        connection = psycopg.connect(postgres_database)
    with ticking() as ticks:
        lending = asyncio.ensure_future(store.caller.lend(connection, lambda lent: store.caller.submit(lent, tasks)))
        while ticks[0] < 30:
            await asyncio.sleep(0.001)
        assert not lending.done()
        writers[0].commit(holder)
        (answered,) = await lending
    assert isinstance(answered, Submitted)
    assert answered.replayed
    await close(connection)


async def close(connection: Any) -> None:
    closed = connection.close()
    if closed is not None:
        await closed


@pytest.mark.parametrize("awaited", [True, False])
async def test_nothing_runs_on_a_lent_connection_after_a_cancel(
    store: PostgresStore, writers: list[Writer], postgres_database: str, awaited: bool
) -> None:
    holder = writers[0].begin()
    submission.submit(holder, writers[0].tasks(1, idempotency_key="k", request_hash="h"), writers[0].lanes)
    tasks = writers[1].tasks(1, idempotency_key="k", request_hash="h")
    connection: Any
    if awaited:
        connection = await psycopg.AsyncConnection.connect(postgres_database)
    else:
        connection = psycopg.connect(postgres_database)
    lending = asyncio.ensure_future(store.caller.lend(connection, lambda lent: store.caller.submit(lent, tasks)))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with plain(postgres_database) as watcher:
        while not one(watcher, waiting):
            await asyncio.sleep(0.005)
    lending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lending
    assert connection.info.transaction_status in (TransactionStatus.INERROR, TransactionStatus.IDLE)
    writers[0].commit(holder)
    rolled_back = connection.rollback()
    if awaited:
        await rolled_back
    with plain(postgres_database) as watcher:
        assert one(watcher, "SELECT count(*) FROM perdure_tasks") == 1
    await close(connection)
