"""The command line on a PostgreSQL store: the schema, a job with worker processes, and refusals without passwords."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.conftest import Perdure

if TYPE_CHECKING:
    from servers.databases import Databases


@pytest.fixture
def database(postgres_database: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a migrated database, named by the environment."""
    monkeypatch.setenv("PERDURE_STORE", postgres_database)
    return postgres_database


def test_the_schema_is_shown_made_and_current(
    perdure: Perdure, postgres_databases: "Databases", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE", postgres_databases.server.url(postgres_databases.make("template1")))
    missing = perdure("db", "status", "--json")
    assert (missing.code, missing.json["current"]) == (1, False)
    shown = perdure("db", "migrate", "--print")
    assert "CREATE TABLE perdure_tasks" in shown.out
    assert perdure("db", "migrate").out.startswith("took step 1 ledger")
    assert perdure("db", "migrate").out == "nothing to do: the schema is current\n"
    assert perdure("db", "status", "--json").json["current"]


def test_a_job_runs_in_worker_processes_and_is_shown(perdure: Perdure, database: str) -> None:
    tasks = [{"name": name, "kind": "perdure.sleep", "payload": {"seconds": 0}} for name in ("a", "b")]
    tasks[1]["depends_on"] = ["a"]
    Path("job.json").write_text(json.dumps({"name": "pair", "tasks": tasks}))
    answer = perdure("job", "run", "job.json", "--workers", "2", "--json")
    assert answer.code == 0, answer.err
    shown = perdure("job", "show", answer.json["job_id"], "--json").json
    assert shown["state"] == "succeeded"


def test_a_database_that_is_not_there_ends_with_3_and_without_the_password(
    perdure: Perdure, postgres_databases: "Databases"
) -> None:
    url = postgres_databases.server.url("nowhere").replace("postgres@", "postgres:s3cret@")
    answer = perdure("task", "list", "--store", url, "--json")
    assert answer.code == 3
    assert "createdb nowhere" in answer.err
    assert "s3cret" not in answer.err + answer.out
