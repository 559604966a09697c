"""Migrations: each step once, whoever takes it, and a status that can be read from any file."""

import asyncio
from pathlib import Path

import pytest

from perdure.errors import StoreUnreachable
from perdure.store.schema import Migration
from perdure.store.sqlite.opening import open_reading, open_writing
from perdure.store.sqlite.schema import known_steps, read_status, take_steps, taken_steps
from perdure.store.sqlite.store import SqliteStore

LATER = Migration(9000, "later", "CREATE TABLE later (n INTEGER) STRICT")


async def test_opening_takes_every_step_once(tmp_path: Path):
    path = str(tmp_path / "perdure.db")
    for _ in range(2):
        store = await SqliteStore.open(path)
        status = await store.schema.status()
        assert [step[:3] for step in status] == [step[:3] for step in known_steps()]
        assert all(step.applied_us for step in status)
        assert await store.schema.migrate() == []
        await store.close()


async def test_many_who_open_a_new_file_at_once_find_it_migrated(tmp_path: Path):
    path = str(tmp_path / "perdure.db")
    stores = await asyncio.gather(*(SqliteStore.open(path) for _ in range(8)))
    for store in stores:
        assert all(step.applied_us for step in await store.schema.status())
        await store.close()


async def test_a_step_that_fails_leaves_nothing_of_itself(tmp_path: Path):
    path = str(tmp_path / "perdure.db")
    await (await SqliteStore.open(path)).close()
    connection = open_writing(path, 1.0)
    half = Migration(9001, "half", "CREATE TABLE half (n INTEGER) STRICT; CREATE TABLE perdure_tasks (n INTEGER)")
    with pytest.raises(Exception, match="step 9001"):
        take_steps(connection, [*known_steps(), LATER, half], 7)
    assert max(taken_steps(connection)) == 9000
    assert "half" not in {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()


async def test_a_new_step_is_taken_on_an_old_file(tmp_path: Path):
    path = str(tmp_path / "perdure.db")
    await (await SqliteStore.open(path)).close()
    connection = open_writing(path, 1.0)
    assert take_steps(connection, [*known_steps(), LATER], 7) == [LATER._replace(applied_us=7)]
    assert take_steps(connection, [*known_steps(), LATER], 8) == []
    connection.close()


async def test_the_status_of_a_file_that_lacks_steps_can_be_read(tmp_path: Path):
    path = str(tmp_path / "perdure.db")
    open_writing(path, 1.0).close()
    assert [step.applied_us for step in read_status(path)] == [None for _ in known_steps()]
    assert taken_steps(open_reading(path, 1.0)) == {}


def test_the_status_of_no_file_makes_none(tmp_path: Path):
    with pytest.raises(StoreUnreachable):
        read_status(str(tmp_path / "perdure.db"))
    assert list(tmp_path.iterdir()) == []


async def test_tables_of_others_are_no_steps_that_were_taken(tmp_path: Path):
    path = str(tmp_path / "shared.db")
    connection = open_writing(path, 1.0)
    connection.execute("CREATE TABLE orders (n INTEGER) STRICT; CREATE VIEW recent AS SELECT n FROM orders")
    assert taken_steps(connection) == {}
    connection.close()
    store = await SqliteStore.open(path)
    await store.close()
