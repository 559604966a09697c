"""Submitting and settling inside a transaction of the caller's own."""

import threading
from contextlib import suppress

import apsw
import pytest

import perdure


@pytest.fixture
def connection(app, tmp_path):
    connection = apsw.Connection(str(tmp_path / "app.db"))
    connection.set_busy_timeout(5_000)
    connection.execute("CREATE TABLE IF NOT EXISTS orders (item TEXT)")
    yield connection
    connection.close()


async def test_a_task_exists_exactly_if_the_transaction_commits(app, connection):
    async with app, app.worker():
        with connection:
            connection.execute("INSERT INTO orders VALUES ('lamp')")
            kept = await app.submit("greet", person="Ann", connection=connection)
        with suppress(ZeroDivisionError), connection:
            gone = await app.submit("greet", person="Bob", connection=connection)
            raise ZeroDivisionError
        assert await kept.result(10) == "Hello, Ann"
        with pytest.raises(perdure.NotFound):
            await gone.status()


async def test_what_the_kind_says_goes_with_the_task(app, connection):
    async with app:
        with connection:
            handle = await app.submit("greet", person="Ann", connection=connection)
        view = await handle.status()
    assert (view.queue, view.priority, view.max_attempts) == ("bulk", 7, 5)


async def test_many_are_submitted_in_one_transaction(app, connection):
    add = app.tasks["add"]
    async with app, app.worker():
        with connection:
            handles = await app.submit_many([add.call(number) for number in range(3)], connection=connection)
        assert [await handle.result(10) for handle in handles] == [1, 2, 3]


async def test_outside_a_transaction_it_is_refused(app, connection):
    async with app:
        with pytest.raises(perdure.Misuse, match="outside a transaction"):
            await app.submit("add", left=1, connection=connection)


async def test_a_connection_to_another_file_is_refused(app, tmp_path):
    other = apsw.Connection(str(tmp_path / "other.db"))
    async with app:
        with pytest.raises(perdure.Misuse, match="the store on"), other:
            await app.submit("add", left=1, connection=other)
    other.close()


def test_plain_code_does_it_on_its_own_thread(app, connection):
    with app.sync as client:
        with connection:
            kept = client.submit("add", left=1, connection=connection)
        with suppress(ZeroDivisionError), connection:
            gone = client.submit("add", left=1, connection=connection)
            raise ZeroDivisionError
        assert kept.status().state in ("pending", "queued")
        with pytest.raises(perdure.NotFound):
            gone.status()
        assert threading.active_count() >= 2


async def test_the_first_use_may_be_inside_a_transaction(app, connection):
    async with app:
        pass
    connection.execute("BEGIN IMMEDIATE")
    try:
        handle = await app.submit("add", left=1, connection=connection)
    finally:
        connection.execute("COMMIT")
    assert (await handle.status()).state in ("pending", "queued")
    await app.close()


async def test_an_effect_and_the_end_of_its_task_are_one(app, connection, tmp_path):
    @app.task("order.ship", max_attempts=2)
    def ship(item: str, *, ctx: perdure.SyncContext) -> str:
        own = apsw.Connection(str(tmp_path / "app.db"))
        own.set_busy_timeout(5_000)
        with own:
            own.execute("INSERT INTO orders VALUES (?)", (f"{item} {ctx.attempt}",))
            ctx.settle_within(own, "shipped")
        own.close()
        raise ConnectionError("the worker fails after its transaction has committed")

    async with app, app.worker():
        handle = await app.submit(ship, item="lamp")
        assert await handle.result(10) == "shipped"
    assert connection.execute("SELECT item FROM orders").fetchall() == [("lamp 1",)]


async def test_a_transaction_that_has_read_and_may_not_write_any_more_is_told_to_begin_otherwise(app, connection):
    async with app:
        await app.submit("add", left=1)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM orders").fetchall()
        await app.submit("add", left=2)
        with pytest.raises(perdure.PerdureError, match="BEGIN IMMEDIATE") as refused:
            await app.submit("add", left=3, connection=connection)
        assert refused.value.code == "store_busy"
        connection.execute("ROLLBACK")
