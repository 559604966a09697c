"""Submitting, listing, showing and cancelling from the command line."""

import asyncio
import json
from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure.app import App
from perdure.cli.task_wait import watching
from perdure.errors import StoreBusy


def test_a_submitted_task_is_listed_and_shown(perdure: Perdure) -> None:
    submitted = perdure("submit", "email.send", '{"to": "a@b.org"}', "--priority", "7", "--label", "team=x", "--json")
    assert submitted.code == 0
    told = {"state": "queued", "replayed": False, "outcome": "created"}
    assert submitted.json == {"id": submitted.json["id"], **told}
    task_id = submitted.json["id"]
    [row] = perdure("task", "list", "--json").json["tasks"]
    assert (row["id"], row["kind"], row["priority"], row["labels"]) == (task_id, "email.send", 7, {"team": "x"})
    assert "payload" not in row
    shown = perdure("task", "show", task_id, "--json").json
    assert shown["payload"] == {"to": "a@b.org"}
    assert shown["attempts"] == []
    assert shown["created_at"].endswith("Z")
    text = perdure("task", "show", task_id).out
    assert '{"to":"a@b.org"}' in text
    assert "email.send" in text


def test_without_json_submit_writes_the_id_alone(perdure: Perdure) -> None:
    answer = perdure("submit", "a.kind")
    assert perdure("task", "show", answer.out.strip(), "--json").json["payload"] is None


def test_no_json_is_no_fields_where_a_kind_takes_fields(perdure: Perdure) -> None:
    app = App()

    @app.task("greet")
    async def greet(name: str = "you") -> str:
        return name

    @app.task("meet")
    async def meet(name: str) -> str:
        return name

    async def declare() -> None:
        system = await app.system()
        await system.engine.declare(app.registry.definitions(), app.principal)
        await app.close()

    asyncio.run(declare())
    answer = perdure("submit", "greet")
    assert perdure("task", "show", answer.out.strip(), "--json").json["payload"] == {}
    said_null = perdure("submit", "greet", "null").out.strip()
    assert perdure("task", "show", said_null, "--json").json["payload"] == {}
    assert perdure("submit", "greet", "7", "--json").problem["fields"]["field"] == "payload"
    assert '"name" is a required property' in perdure("submit", "meet").err


def test_an_idempotency_key_makes_one_task(perdure: Perdure) -> None:
    first = perdure("submit", "k", "1", "--idempotency-key", "a", "--json").json
    again = perdure("submit", "k", "1", "--idempotency-key", "a", "--json").json
    assert first["outcome"] == "created"
    assert again == first | {"replayed": True, "outcome": "existing"}
    other = perdure("submit", "k", "2", "--idempotency-key", "a", "--json")
    assert other.code == 2
    assert other.problem["code"] == "idempotency_conflict"


def test_payloads_come_from_files_too(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"x": [1, 2]}')
    task_id = perdure("submit", "k", "@p.json").out.strip()
    assert perdure("task", "show", task_id, "--json").json["payload"] == {"x": [1, 2]}


def test_filters_choose_tasks(perdure: Perdure) -> None:
    perdure("submit", "a", "--queue", "slow")
    perdure("submit", "b", "--delay", "3600")

    def kinds(*arguments: str) -> list[str]:
        return [row["kind"] for row in perdure("task", "list", "--json", *arguments).json["tasks"]]

    assert kinds() == ["b", "a"]
    assert kinds("--kind", "a") == ["a"]
    assert kinds("--queue", "slow") == ["a"]
    assert kinds("--state", "pending") == ["b"]
    assert kinds("--state", "failed") == []


def test_pages_follow_their_cursor(perdure: Perdure) -> None:
    for number in range(3):
        perdure("submit", f"k{number}")
    first = perdure("task", "list", "--limit", "2", "--json").json
    rest = perdure("task", "list", "--limit", "2", "--cursor", first["cursor"], "--json").json
    assert [row["kind"] for row in first["tasks"] + rest["tasks"]] == ["k2", "k1", "k0"]
    assert rest["cursor"] is None
    oldest = perdure("task", "list", "--oldest", "--limit", "2", "--json").json
    last = perdure("task", "list", "--oldest", "--cursor", oldest["cursor"], "--json").json
    assert [row["kind"] for row in oldest["tasks"] + last["tasks"]] == ["k0", "k1", "k2"]
    assert "--cursor" in perdure("task", "list", "--limit", "2").err
    assert perdure("task", "list", "--cursor", "nonsense").code == 2


def test_a_cancelled_task_tells_so(perdure: Perdure) -> None:
    task_id = perdure("submit", "k").out.strip()
    answer = perdure("task", "cancel", task_id, "--reason", "no longer wanted", "--json")
    assert answer.code == 0
    assert answer.json["tasks"][0]["answer"] == "cancelled"
    shown = perdure("task", "show", task_id, "--json").json
    assert (shown["state"], shown["cancel"]["text"]) == ("cancelled", "no longer wanted")
    assert shown["cancel"]["actor"].startswith("cli:")
    assert "was cancelled before" in perdure("task", "cancel", task_id).out
    types = [event["type"] for event in perdure("task", "events", task_id, "--json").json["events"]]
    assert len(types) >= 2
    assert perdure("task", "events", task_id).out.count("\n") == len(types) + 1


@pytest.mark.parametrize("named", ["ann", "app"])
def test_who_acts_is_whom_the_environment_names_even_if_it_is_the_default_name(
    perdure: Perdure, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    task_id = perdure("submit", "k").out.strip()
    monkeypatch.setenv("PERDURE_PRINCIPAL", named)
    perdure("task", "cancel", task_id)
    assert perdure("task", "show", task_id, "--json").json["cancel"]["actor"] == named


def test_waiting_for_a_task_that_did_not_succeed_is_exit_code_1(perdure: Perdure) -> None:
    task_id = perdure("submit", "k").out.strip()
    perdure("task", "cancel", task_id)
    answer = perdure("task", "wait", task_id, "--json")
    assert answer.code == 1
    assert answer.json["tasks"][0]["state"] == "cancelled"


def test_a_wait_that_takes_too_long_is_exit_code_1(perdure: Perdure) -> None:
    task_id = perdure("submit", "k").out.strip()
    answer = perdure("task", "wait", task_id, "--timeout", "0.01", "--json")
    assert answer.code == 1
    assert answer.problem["code"] == "wait_timed_out"


async def test_a_look_of_the_progress_bar_that_fails_costs_the_wait_nothing() -> None:
    looks: list[int] = []

    async def busy() -> int:
        looks.append(1)
        raise StoreBusy("too many questions wait")

    async with watching(busy, looks.append):
        while not looks:
            await asyncio.sleep(0)
    assert looks == [1]


def test_a_paused_queue_is_shown_until_it_is_resumed(perdure: Perdure) -> None:
    perdure("submit", "k", "--queue", "mail")
    assert perdure("queue", "pause", "mail", "--json").json == {"queue": "mail", "paused": True}
    [queue] = perdure("queue", "list", "--json").json["queues"]
    assert (queue["name"], queue["paused"], queue["counts"]["queued"]) == ("mail", True, 1)
    assert "yes" in perdure("queue", "list").out
    perdure("queue", "resume", "mail")
    assert perdure("queue", "list", "--json").json["queues"][0]["paused"] is False


def test_a_purged_queue_is_empty(perdure: Perdure) -> None:
    task_id = perdure("submit", "k", "--queue", "mail").out.strip()
    assert perdure("queue", "purge", "mail", "--yes", "--json").json == {"queue": "mail", "cancelled": 1}
    shown = perdure("task", "show", task_id, "--json").json
    assert (shown["state"], shown["reason"]) == ("cancelled", "purged")


JOB = "name: two\ntasks:\n- {name: a, kind: k}\n- {name: b, kind: k, depends_on: [a]}\n"


def test_a_job_is_submitted_shown_and_cancelled(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    submitted = perdure("job", "submit", "job.yaml", "--json").json
    assert set(submitted["task_ids"]) == {"a", "b"}
    shown = perdure("job", "show", submitted["id"], "--json").json
    assert (shown["name"], shown["state"], shown["total"]) == ("two", "pending", 2)
    assert [(task["name"], task["parents"]) for task in shown["tasks"]] == [("a", []), ("b", ["a"])]
    assert "two" in perdure("job", "show", submitted["id"]).out
    assert perdure("job", "list", "--json").json["jobs"][0]["id"] == submitted["id"]
    assert perdure("job", "cancel", submitted["id"], "--json").json["cancelled"] is True
    again = perdure("job", "cancel", submitted["id"])
    assert again.code == 0
    listed = perdure("task", "list", "--job", submitted["id"], "--json").json["tasks"]
    assert {row["name"] for row in listed} == {"a", "b"}


def test_the_same_key_submits_a_job_once(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    first = perdure("job", "submit", "job.yaml", "--idempotency-key", "n", "--json").json
    again = perdure("job", "submit", "job.yaml", "--idempotency-key", "n", "--json").json
    assert again == first | {"replayed": True}


@pytest.mark.parametrize("name", ["job.yaml", "job.json"])
def test_a_broken_job_file_is_refused_with_its_place_and_nothing_stored(
    perdure: Perdure, tmp_path: Path, name: str
) -> None:
    perdure("db", "migrate")
    job = {"name": "x", "tasks": [{"name": "a", "kind": "k", "depends_on": ["b"]}]}
    (tmp_path / name).write_text(json.dumps(job, indent=1))
    answer = perdure("job", "submit", name, "--json")
    assert answer.code == 2
    assert (answer.problem["code"], answer.problem["fields"]["line"]) == ("invalid", 8)
    assert perdure("job", "list", "--json").json["jobs"] == []


def test_the_schema_is_made_once(perdure: Perdure) -> None:
    assert "create table" in perdure("db", "migrate", "--print").out.lower()
    taken = perdure("db", "migrate", "--json").json["taken"]
    assert [step["number"] for step in taken] == list(range(1, len(taken) + 1))
    assert perdure("db", "migrate", "--json").json == {"taken": []}
    status = perdure("db", "status", "--json")
    assert (status.code, status.json["current"]) == (0, True)
    assert "ledger" in perdure("db", "status").out


def test_dead_letters_of_nothing_are_none(perdure: Perdure) -> None:
    task_id = perdure("submit", "k").out.strip()
    assert perdure("dead-letter", "list", "--json").json == {"tasks": [], "cursor": None}
    assert perdure("dead-letter", "requeue", "--all", "--yes", "--json").json == {"requeued": 0, "refused": []}
    refused = perdure("dead-letter", "discard", task_id, "--json")
    assert refused.code == 2
    assert refused.json["refused"][0]["id"] == task_id


def test_nothing_from_a_task_reaches_the_terminal_as_a_command(perdure: Perdure) -> None:
    task_id = perdure("submit", "k", "null", "--label", "x=\x1b[2J").out.strip()
    assert "\x1b" not in perdure("task", "show", task_id).out
