"""`perdure doctor` looks at a store, warns of what may go wrong, and changes nothing."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from cli.conftest import Perdure
from perdure.domain.limits import SECOND_US
from perdure.store import health
from perdure.store.sqlite import health as sqlite_health
from perdure.store.sqlite import schema, wal

if TYPE_CHECKING:
    from servers.databases import Databases

OF_THE_TESTS_SERVER = ["fsync", "full_page_writes", "autovacuum"]
"""What the tests' PostgreSQL does without."""


@pytest.fixture
def made(perdure: Perdure, store: Path) -> Path:
    """A store of the current schema."""
    assert perdure("db", "migrate").code == 0
    return store


def warned_of(perdure: Perdure) -> list[str]:
    """The names of what the doctor warns of, after a look at how it tells so."""
    answer = perdure("doctor", "--json")
    found = answer.json
    assert answer.code == (1 if found["warnings"] else 0)
    assert found["healthy"] == (not found["warnings"])
    assert all(each["message"] for each in found["warnings"])
    return [each["about"] for each in found["warnings"]]


def test_a_good_store_is_nothing_to_warn_of(perdure: Perdure, made: Path) -> None:
    answer = perdure("doctor", "--json")
    assert answer.code == 0
    facts = answer.json["facts"]
    assert facts["path"] == str(made)
    assert facts["sqlite_version"] == apsw.sqlite_lib_version()
    assert facts["journal_mode"] == "wal"
    assert facts["database_bytes"] == made.stat().st_size
    assert facts["free_disk_bytes"] > 0
    assert facts["schema_step"] == len(schema.known_steps())
    assert abs(facts["clock_difference_seconds"]) < health.CLOCK_DIFFERENCE_MAX_SECONDS
    assert {"perdure_version", "python_version", "platform", "filesystem", "wal_bytes", "writable"} <= facts.keys()


def test_people_get_the_same_as_lines(perdure: Perdure, made: Path) -> None:
    answer = perdure("doctor")
    assert answer.code == 0
    assert str(made) in answer.out
    assert apsw.sqlite_lib_version() in answer.out
    assert "nothing to warn of" in answer.out


def test_nothing_is_changed(perdure: Perdure, made: Path) -> None:
    before = made.read_bytes()
    perdure("doctor")
    assert made.read_bytes() == before


def test_a_store_that_is_not_there_is_exit_code_3_and_makes_none(perdure: Perdure, store: Path) -> None:
    answer = perdure("doctor", "--json")
    assert (answer.code, answer.out, answer.problem["code"]) == (3, "", "store_unreachable")
    assert not store.exists()


def test_a_file_that_is_no_database_is_exit_code_3(perdure: Perdure, store: Path) -> None:
    store.write_text("this is a letter to my aunt, and not a database at all" * 100)
    assert perdure("doctor").code == 3


def test_a_schema_of_a_later_perdure_is_exit_code_3(perdure: Perdure, made: Path) -> None:
    with sqlite3.connect(made) as connection:
        connection.execute("INSERT INTO perdure_migrations (number, name, applied_us) VALUES (9000, 'later', 1)")
    answer = perdure("doctor", "--json")
    assert (answer.code, answer.problem["code"]) == (3, "schema_too_new")


def test_a_gateway_has_to_be_asked_on_its_own_machine(perdure: Perdure) -> None:
    assert perdure("doctor", "--store", "http://127.0.0.1:7373").code == 2


def test_missing_steps_are_told(perdure: Perdure, store: Path) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE somebody_elses (x)")
    assert warned_of(perdure) == ["schema_steps_missing"]
    answer = perdure("doctor")
    assert "perdure db migrate" in answer.out
    assert "0001_ledger" in answer.out
    assert perdure("doctor", "--json").json["facts"]["clock_difference_seconds"] is None


@pytest.mark.parametrize(
    ("place", "value", "name"),
    [
        ("check_version", lambda version: sqlite_health_refuses(version), "sqlite_version"),
        ("check_filesystem", lambda folder: sqlite_health_refuses(folder), "filesystem"),
        ("FREE_DISK_MIN_BYTES", 2**62, "free_disk_bytes"),
    ],
)
def test_what_may_go_wrong_is_warned_of(
    perdure: Perdure, made: Path, monkeypatch: pytest.MonkeyPatch, place: str, value: Any, name: str
) -> None:
    monkeypatch.setattr(sqlite_health, place, value)
    assert warned_of(perdure) == [name]


def sqlite_health_refuses(found: str) -> None:
    raise sqlite_health.UnsafeStore(f"{found} is not safe")


def test_a_long_log_is_warned_of(perdure: Perdure, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(sqlite3.connect(made)) as connection:
        connection.execute("CREATE TABLE somebody_elses (x)")
        assert warned_of(perdure) == []
        monkeypatch.setattr(wal, "LONG_BYTES", 1)
        assert warned_of(perdure) == ["wal_bytes"]


def test_a_file_out_of_wal_mode_is_warned_of(perdure: Perdure, made: Path) -> None:
    with sqlite3.connect(made) as connection:
        connection.execute("PRAGMA journal_mode = delete")
    assert warned_of(perdure) == ["journal_mode"]


def test_a_file_that_may_not_be_written_is_warned_of(
    perdure: Perdure, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access: Callable[..., bool] = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    assert warned_of(perdure) == ["writable"]


@pytest.mark.parametrize(("seconds", "told"), [(-60, "behind"), (60, "ahead of")])
def test_a_clock_that_is_off_is_warned_of(perdure: Perdure, made: Path, seconds: int, told: str) -> None:
    with sqlite3.connect(made) as connection:
        connection.execute(
            "UPDATE perdure_meta SET value = value + ? WHERE key IN ('offset_us', 'last_us')", [seconds * SECOND_US]
        )
    assert warned_of(perdure) == ["clock_difference_seconds"]
    assert f"60.0 s {told} this machine's clock" in perdure("doctor").out


def test_a_database_is_looked_at_with_its_tables(
    perdure: Perdure, postgres_databases: "Databases", monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_databases.server.url(postgres_databases.make("template1"))
    monkeypatch.setenv("PERDURE_STORE", url)
    assert warned_of(perdure) == [*OF_THE_TESTS_SERVER, "schema_steps_missing"]
    assert perdure("db", "migrate").code == 0
    assert warned_of(perdure) == OF_THE_TESTS_SERVER
    [live] = [table for table in perdure("doctor", "--json").json["tables"] if table["name"] == "perdure_live"]
    assert live == {
        "name": "perdure_live",
        "rows": 0,
        "dead_rows": 0,
        "size_bytes": live["size_bytes"],
        "vacuumed_at": None,
        "analyzed_at": None,
    }
    shown = perdure("doctor").out
    assert "perdure_live" in shown
    assert "warning: fsync: fsync is off" in shown


def test_a_server_that_is_not_there_is_exit_code_3(perdure: Perdure) -> None:
    answer = perdure("doctor", "--json", "--store", "postgresql://postgres:very-secret@127.0.0.1:1/shop")
    assert (answer.code, answer.out, answer.problem["code"]) == (3, "", "store_unreachable")
    assert "very-secret" not in answer.err


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (3 * 1024**3, "3.0 GiB"),
        (5000 * 1024**4, "5,000.0 TiB"),
    ],
)
def test_sizes_are_shown_for_people(size: int, shown: str) -> None:
    from perdure.cli.doctor import shown_bytes

    assert shown_bytes(size) == shown
