"""What a user does: submits in a transaction of a request, and settles with the effects of a handler."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import perdure
from backends.postgres.opened import plain


@pytest.fixture
def shop(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    """A table of the user's own, and a look at it."""
    with plain(postgres_database) as connection:
        connection.execute("CREATE TABLE orders (item text)")
        yield connection


async def test_a_task_and_its_effects_are_one_with_awaited_connections(
    shop: psycopg.Connection[Any], postgres_database: str
) -> None:
    app = perdure.App(postgres_database)

    @app.task("order.ship", max_attempts=3)
    async def ship(item: str, *, ctx: perdure.Context) -> str:
        async with await psycopg.AsyncConnection.connect(postgres_database) as own:
            await own.execute("INSERT INTO orders VALUES (%s)", [f"{item} {ctx.attempt}"])
            await ctx.settle_within_async(own, "shipped")
        raise ConnectionError("the worker fails after its transaction has committed")

    async with app, app.worker():
        async with await psycopg.AsyncConnection.connect(postgres_database) as own:
            kept = await app.submit(ship, item="lamp", connection=own)
            await own.commit()
            gone = await app.submit(ship, item="desk", connection=own)
            await own.rollback()
        assert await kept.result(20) == "shipped"
        with pytest.raises(perdure.NotFound):
            await gone.status()
    assert shop.execute("SELECT item FROM orders").fetchall() == [("lamp 1",)]


async def test_a_handler_that_rolls_back_runs_again(shop: psycopg.Connection[Any], postgres_database: str) -> None:
    app = perdure.App(postgres_database)

    @app.task("order.ship", retry=perdure.Retry(backoff="fixed", base=0.01))
    def ship(item: str, *, ctx: perdure.SyncContext) -> str:
        with psycopg.connect(postgres_database) as own:
            own.execute("INSERT INTO orders VALUES (%s)", [f"{item} {ctx.attempt}"])
            ctx.settle_within(own, "shipped")
            if ctx.attempt == 1:
                own.rollback()
                raise ConnectionError("nothing of this attempt counts")
        return "not this"

    async with app, app.worker():
        handle = await app.submit(ship, item="lamp")
        assert await handle.result(30) == "shipped"
    assert shop.execute("SELECT item FROM orders").fetchall() == [("lamp 2",)]


def test_plain_code_submits_in_its_own_transaction(shop: psycopg.Connection[Any], postgres_database: str) -> None:
    app = perdure.App(postgres_database)

    @app.task("order.ship")
    def ship(item: str) -> str:
        return item

    with app.sync as client, psycopg.connect(postgres_database) as own:
        kept = client.submit(ship, item="lamp", connection=own)
        with pytest.raises(perdure.NotFound):
            kept.status()
        own.commit()
        assert kept.status().state in ("pending", "queued")
        with (
            pytest.raises(perdure.Misuse, match="own database"),
            psycopg.connect(postgres_database, dbname="postgres") as other,
        ):
            client.submit(ship, item="desk", connection=other)
