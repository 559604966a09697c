"""What a look at a PostgreSQL store finds, and what it warns of. The tests' own server does without durability."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from perdure.ambient import SystemClock
from perdure.errors import SchemaTooNew, StoreUnreachable
from perdure.store.health import Health
from perdure.store.postgres import health
from perdure.store.postgres.health import examine
from perdure.store.postgres.schema import known_steps
from perdure.testing import VirtualClock

if TYPE_CHECKING:
    from servers.databases import Databases

OF_THE_TESTS_SERVER = ["fsync", "full_page_writes", "autovacuum"]


@pytest.fixture
def another(postgres_database: str) -> Iterator[psycopg.Connection]:
    """Somebody else's connection."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def found(url: str) -> Health:
    return examine(url, SystemClock())


def warned_of(url: str) -> list[str]:
    """The names of what is warned of, but for what the tests' server always has."""
    return [name for name, _ in found(url).warnings() if name not in OF_THE_TESTS_SERVER]


def test_facts_and_tables_are_told(postgres_database: str) -> None:
    seen = found(postgres_database)
    facts = {fact.name: fact.value for fact in seen.facts}
    assert seen.store == "postgresql"
    assert str(facts["server_version"])[0].isdigit()
    assert facts["synchronous_commit"] == "on"
    assert (facts["connections_of_perdure"], facts["standbys"], facts["pooled"]) == (1, 0, False)
    assert facts["schema_step"] == len(known_steps())
    assert {"perdure_tasks", "perdure_live", "perdure_ends"} <= {table.name for table in seen.tables}
    assert all(table.name.startswith("perdure_") for table in seen.tables)


def test_a_server_that_would_lose_work_is_warned_of(postgres_database: str) -> None:
    assert [name for name, _ in found(postgres_database).warnings()] == OF_THE_TESTS_SERVER


def test_a_password_is_not_shown(postgres_database: str) -> None:
    url = postgres_database.replace("postgres@", "postgres:very-secret@")
    assert "very-secret" not in str(found(url))


def test_missing_steps_are_told_and_not_taken(postgres_databases: "Databases") -> None:
    url = postgres_databases.server.url(postgres_databases.make("template1"))
    for _ in range(2):
        assert warned_of(url) == ["schema_steps_missing"]
    assert found(url).tables == ()


def test_a_schema_of_a_later_perdure_is_refused(postgres_database: str, another: psycopg.Connection) -> None:
    another.execute("INSERT INTO perdure_migrations VALUES (9000, 'later', 1)")
    with pytest.raises(SchemaTooNew):
        found(postgres_database)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(StoreUnreachable):
        found("postgresql://postgres@127.0.0.1:1/postgres")


def test_whoever_keeps_dead_rows_alive_is_named(
    postgres_database: str, another: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    another.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    another.execute("SELECT count(*) FROM perdure_tasks")
    assert warned_of(postgres_database) == []
    monkeypatch.setattr(health, "SNAPSHOT_MAX_SECONDS", -1.0)
    [message] = [message for name, message in found(postgres_database).warnings() if name == "oldest_snapshot_seconds"]
    assert f"process {another.info.backend_pid}, postgres, idle in transaction" in message


def test_dead_rows_are_warned_of_until_they_are_vacuumed(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as gone:
        # Of the tests that had this database before.
        gone.execute("SELECT pg_stat_reset()")
        gone.execute("INSERT INTO perdure_frontier SELECT n, true FROM generate_series(1, 1000) AS n")
        gone.execute("DELETE FROM perdure_frontier")
        gone.execute("SELECT pg_stat_force_next_flush()")
    assert warned_of(postgres_database) == []
    monkeypatch.setattr(health, "DEAD_ROWS_MAX", 900)
    assert warned_of(postgres_database) == ["perdure_frontier"]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE perdure_frontier")
    assert warned_of(postgres_database) == []
    [table] = [table for table in found(postgres_database).tables if table.name == "perdure_frontier"]
    assert table.dead_rows == 0
    assert table.vacuumed_us is not None
    assert table.analyzed_us is not None


def test_a_slot_that_nobody_reads_is_named(
    postgres_database: str, another: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    another.execute("SELECT pg_create_physical_replication_slot('forgotten', true)")
    try:
        assert warned_of(postgres_database) == []
        monkeypatch.setattr(health, "SLOT_MAX_BYTES", -1)
        [message] = [message for name, message in found(postgres_database).warnings() if name == "kept_for_slots_bytes"]
        assert "slot forgotten" in message
    finally:
        another.execute("SELECT pg_drop_replication_slot('forgotten')")


def test_a_crowded_server_is_warned_of(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CONNECTIONS_FREE_MIN", 1.0)
    assert warned_of(postgres_database) == ["connections"]


def test_a_clock_that_is_off_is_warned_of(postgres_database: str) -> None:
    seen = examine(postgres_database, VirtualClock())
    assert "clock_difference_seconds" in [name for name, _ in seen.warnings()]


def test_a_role_that_sees_no_other_sessions_is_no_fault(postgres_database: str, another: psycopg.Connection) -> None:
    another.execute("CREATE ROLE plain LOGIN")
    try:
        another.execute("GRANT SELECT ON perdure_migrations TO plain")
        url = postgres_database.replace("postgres@", "plain@")
        facts = {fact.name: fact.value for fact in found(url).facts}
        assert facts["sessions_hidden"] != 0
        assert warned_of(url) == []
    finally:
        another.execute("REVOKE ALL ON perdure_migrations FROM plain")
        another.execute("DROP ROLE plain")
