"""Commands that look at something which is no store of perdure say so, and leave it as it was."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.conftest import Perdure

if TYPE_CHECKING:
    from servers.databases import Databases

UNKNOWN = "01900000-0000-7000-8000-000000000000"

LOOKS = [
    ["task", "list"],
    ["task", "show", UNKNOWN],
    ["task", "events", UNKNOWN],
    ["task", "wait", UNKNOWN],
    ["task", "logs", UNKNOWN],
    ["job", "list"],
    ["job", "show", UNKNOWN],
    ["queue", "list"],
    ["queue", "show", "default"],
    ["dead-letter", "list"],
    ["dead-letter", "show", UNKNOWN],
    ["worker", "list"],
    ["organization", "show"],
]


def foreign(path: Path, journal: str = "delete") -> None:
    """Make the database of another program, with one row."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.executescript("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ada')")
    connection.close()


@pytest.mark.parametrize("arguments", LOOKS, ids=" ".join)
@pytest.mark.parametrize("make", [Path.touch, foreign])
def test_a_file_without_a_store_is_told_of_and_left_as_it_was(
    perdure: Perdure, store: Path, make: Callable[[Path], None], arguments: list[str]
) -> None:
    make(store)
    before = store.read_bytes()
    answer = perdure(*arguments, "--json")
    assert (answer.code, answer.out) == (3, "")
    assert answer.problem["code"] == "schema_too_old"
    assert answer.problem["message"].startswith(f"{store} holds no perdure store yet: `perdure db migrate` makes one")
    assert store.read_bytes() == before
    assert [each.name for each in store.parent.iterdir()] == [store.name]


def test_a_file_in_wal_mode_of_another_program_keeps_its_content(perdure: Perdure, store: Path) -> None:
    foreign(store, journal="wal")
    before = store.read_bytes()
    assert "holds no perdure store yet" in perdure("task", "list").err
    assert store.read_bytes() == before


def test_an_older_schema_is_told_of_and_not_migrated(perdure: Perdure, store: Path) -> None:
    perdure("db", "migrate")
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM perdure_migrations WHERE number = (SELECT max(number) FROM perdure_migrations)")
    connection.close()
    answer = perdure("queue", "list")
    assert (answer.code, answer.out) == (3, "")
    assert "the schema lacks step" in answer.err
    assert "run `perdure db migrate`" in answer.err
    assert perdure("db", "status").code == 1


@pytest.mark.parametrize("arguments", [["submit", "a.kind"], ["queue", "pause", "default"], ["db", "migrate"]])
def test_commands_that_act_make_the_store_in_an_empty_file(perdure: Perdure, store: Path, arguments: list[str]) -> None:
    store.touch()
    assert perdure(*arguments).code == 0
    assert perdure("task", "list").code == 0


@pytest.mark.parametrize("arguments", LOOKS, ids=" ".join)
def test_an_empty_database_of_postgres_is_told_of_and_left_empty(
    perdure: Perdure, empty_database: str, arguments: list[str]
) -> None:
    import psycopg

    answer = perdure(*arguments, "--store", empty_database)
    assert (answer.code, answer.out) == (3, "")
    assert "holds no perdure store yet: `perdure db migrate` makes one" in answer.err
    with psycopg.connect(empty_database) as connection:
        [tables] = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() or [None]
    assert tables == 0


@pytest.fixture(scope="module")
def empty_database(postgres_databases: "Databases") -> str:
    """The URL of a database without any table."""
    return postgres_databases.server.url(postgres_databases.make("template1"))
