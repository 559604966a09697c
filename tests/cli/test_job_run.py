"""`perdure job run`: a DAG from a file, run to its end."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Perdure
from perdure.cli import job_run
from perdure.cli.worker_processes import worker_command

DIAMONDS = 4


def diamonds(seconds: float) -> dict[str, Any]:
    """Some diamonds behind one another."""

    def sleep(name: str, *parents: str) -> dict[str, Any]:
        return {"name": name, "kind": "perdure.sleep", "payload": {"seconds": seconds}, "depends_on": list(parents)}

    tasks = [sleep("start")]
    last = "start"
    for number in range(DIAMONDS):
        sides = [f"{number}-{side}" for side in "abc"]
        tasks += [sleep(name, last) for name in sides]
        last = f"{number}-join"
        tasks.append(sleep(last, *sides))
    return {"name": "diamonds", "tasks": tasks}


def check_effects(job: dict[str, Any], ledger: Path) -> set[int]:
    """Each task ran once, none before its parents had ended; the processes that ran them."""
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert Counter((line["event"], line["name"]) for line in lines) == {
        (event, task["name"]): 1 for task in job["tasks"] for event in ("start", "end")
    }
    at = {(line["event"], line["name"]): line["boot_us"] for line in lines}
    for task in job["tasks"]:
        for parent in task.get("depends_on", []):
            assert at["end", parent] <= at["start", task["name"]]
    return {line["pid"] for line in lines}


@pytest.fixture
def job(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A job in `job.json`; no store is named."""
    monkeypatch.delenv("PERDURE_STORE")
    value = diamonds(0.02)
    (tmp_path / "job.json").write_text(json.dumps(value))
    return value


def test_a_job_runs_in_this_process_on_a_temporary_store(perdure: Perdure, job: dict[str, Any], tmp_path: Path) -> None:
    answer = perdure("job", "run", "job.json", "--ledger", "effects", "--json")
    assert answer.code == 0, answer.err
    assert len(check_effects(job, tmp_path / "effects")) == 1
    run = answer.json
    assert (run["state"], run["tasks"], run["counts"]) == ("succeeded", 17, {"succeeded": 17})
    assert run["weights"] == "known"
    assert run["ideal"] == pytest.approx(9 * 0.02)
    assert run["critical_tasks"][0] == "start"
    assert run["makespan"] >= run["ideal"]
    temporary = Path(answer.err.split("temporary store, ")[1].splitlines()[0])
    assert not temporary.parent.exists()


def test_a_job_runs_on_worker_processes_and_a_store_that_is_named(
    perdure: Perdure, job: dict[str, Any], tmp_path: Path
) -> None:
    answer = perdure("job", "run", "job.json", "--workers", "2", "--ledger", "effects", "--store", "named.db", "--json")
    assert answer.code == 0, answer.err
    assert check_effects(job, tmp_path / "effects")
    shown = perdure("job", "show", answer.json["job_id"], "--store", "named.db", "--json").json
    assert (shown["state"], shown["open"]) == ("succeeded", 0)
    workers = perdure("worker", "list", "--all", "--store", "named.db", "--json").json["workers"]
    assert len(workers) == 2
    assert all(worker["left_at"] is not None for worker in workers)
    assert sum(worker["capacity"] for worker in workers) >= 32


def test_a_temporary_store_may_be_kept(perdure: Perdure, job: dict[str, Any]) -> None:
    answer = perdure("job", "run", "job.json", "--keep", "--time-scale", "0")
    assert answer.code == 0, answer.err
    kept = answer.err.split("temporary store, ")[1].split(",")[0]
    assert perdure("job", "list", "--store", kept, "--json").json["jobs"][0]["state"] == "succeeded"
    assert "critical path" in answer.out
    assert "succeeded: 17 succeeded" in answer.out


def test_wfformat_is_replayed_and_what_is_assumed_is_said(perdure: Perdure, job: None, tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "id": "a", "parents": [], "children": ["b"]},
        {"name": "b", "id": "b", "parents": ["a"], "children": []},
    ]
    value = {
        "name": "flow",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks},
            "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 40}]},
        },
    }
    (tmp_path / "flow.json").write_text(json.dumps(value))
    answer = perdure("job", "run", "flow.json", "--time-scale", "0.001", "--json")
    assert (answer.code, answer.json["state"]) == (0, "succeeded")
    assert answer.json["work"] == pytest.approx(0.04)
    assert "1 of 2 tasks have no recorded run time" in answer.err
    assert answer.json["notes"] == ["1 of 2 tasks have no recorded run time and take 0 s: b"]


SHOP = """\
import perdure

app = perdure.App()


@app.task("shop.price", max_attempts=1)
async def price(article: str) -> float:
    if article == "ghost":
        raise ValueError("there is no ghost")
    return 9.5
"""


@pytest.fixture
def shop(tmp_path: Path, store: Path) -> str:
    """A user's module in the working directory, under a name of this test's own."""
    name = f"shop_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    return f"{name}:app"


def job_file(tmp_path: Path, *articles: str) -> None:
    tasks = [{"name": each, "kind": "shop.price", "payload": {"article": each}} for each in articles]
    (tmp_path / "prices.yaml").write_text(json.dumps({"name": "prices", "tasks": tasks}))


def test_a_job_of_own_kinds_needs_its_app(perdure: Perdure, shop: str, tmp_path: Path) -> None:
    job_file(tmp_path, "hat")
    refused = perdure("job", "run", "prices.yaml", "--json")
    assert refused.code == 2
    assert refused.problem["fields"]["kinds"] == ["shop.price"]
    done = perdure("job", "run", "prices.yaml", "--app", shop, "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert done.json["weights"] == "measured"


def test_failed_work_is_exit_code_1_and_can_be_looked_into(perdure: Perdure, shop: str, tmp_path: Path) -> None:
    job_file(tmp_path, "hat", "ghost")
    answer = perdure("job", "run", "prices.yaml", "--app", shop, "--json")
    assert answer.code == 1
    assert answer.json["state"] == "failed"
    [failure] = answer.json["failures"]
    assert re.fullmatch(
        r"ghost dead_lettered \(exhausted\), task [0-9a-f-]{36}: ValueError: there is no ghost", failure
    )
    [letter] = perdure("dead-letter", "list", "--json").json["tasks"]
    assert letter["last_error"]["message"] == "there is no ghost"
    assert "there is no ghost" in perdure("dead-letter", "list").out
    assert "there is no ghost" in perdure("dead-letter", "show", letter["id"]).out
    requeued = perdure("dead-letter", "requeue", "--kind", "shop.price", "--yes", "--json")
    assert requeued.json == {"requeued": 1, "refused": []}
    shown = perdure("task", "show", letter["id"], "--json").json
    assert (shown["state"], shown["generation"]) == ("queued", 2)


def test_dead_letters_are_discarded_and_purged(perdure: Perdure, shop: str, tmp_path: Path) -> None:
    job_file(tmp_path, "ghost")
    perdure("job", "run", "prices.yaml", "--app", shop)
    [letter] = perdure("dead-letter", "list", "--json").json["tasks"]
    assert perdure("dead-letter", "discard", letter["id"], "--json").json == {"discarded": 1, "refused": []}
    assert perdure("dead-letter", "list", "--json").json["tasks"] == []
    assert len(perdure("dead-letter", "list", "--discarded", "--json").json["tasks"]) == 1
    assert perdure("dead-letter", "purge", letter["id"], "--yes", "--json").json == {"purged": 1, "refused": []}
    assert perdure("task", "show", letter["id"]).code == 2


def test_waiting_shows_results(perdure: Perdure, shop: str, tmp_path: Path) -> None:
    job_file(tmp_path, "hat", "ghost")
    run = perdure("job", "run", "prices.yaml", "--app", shop, "--json").json
    tasks = perdure("job", "show", run["job_id"], "--json").json["tasks"]
    hat, ghost = (task["id"] for task in tasks)
    good = perdure("task", "wait", hat, "--json")
    assert (good.code, good.json["tasks"][0]["result"]) == (0, 9.5)
    both = perdure("task", "wait", hat, ghost)
    assert both.code == 1
    assert "ValueError: there is no ghost" in both.out


def test_more_at_once_than_a_worker_runs_is_refused_before_anything_is_stored(perdure: Perdure, job: None) -> None:
    answer = perdure("job", "run", "job.json", "--concurrency", "2500", "--json")
    assert answer.code == 2
    assert "--workers 3 or more" in answer.problem["message"]


def test_a_worker_process_that_cannot_start_ends_the_command(
    perdure: Perdure, job: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.cli.job_run.worker_command", lambda *_: [sys.executable, "-c", "exit(2)"])
    answer = perdure("job", "run", "job.json", "--workers", "2")
    assert answer.code == 2
    assert "a worker process ended with exit code 2" in answer.err.splitlines()[-1]


def test_a_killed_worker_process_is_replaced(
    perdure: Perdure, job: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = worker_command(None, 8, ["default"])
    once = (
        "import os, pathlib, signal, sys\n"
        "marker = pathlib.Path('killed')\n"
        "if not marker.exists():\n"
        "    marker.touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    monkeypatch.setattr("perdure.cli.job_run.worker_command", lambda *_: [sys.executable, "-c", once, *command])
    answer = perdure("job", "run", "job.json", "--workers", "1", "--ledger", "effects", "--store", "named.db", "--json")
    assert answer.code == 0, answer.err
    assert (tmp_path / "killed").exists()
    check_effects(job, tmp_path / "effects")


def test_an_interrupted_run_leaves_no_process_behind(job: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(diamonds(20.0)))
    command = [sys.executable, "-m", "perdure", "job", "run", "job.json", "--workers", "1", "--ledger", "effects"]
    os.mkfifo(tmp_path / "effects")
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    # Opened for writing too, so that neither the opening nor a worker that writes later has to wait for anybody.
    with (tmp_path / "effects").open("r+b", buffering=0) as effects:
        readable, _, _ = select.select([effects, os.pidfd_open(running.pid)], [], [], 60)
        assert readable == [effects], running.communicate(timeout=60)
        worker = json.loads(effects.readline())["pid"]
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert errors.splitlines()[-1] == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("priority: 99", "between 0 and 9"),
        ("metadata: {a: " + "x" * 9_000 + "}", "8,192"),
        ("payload: [" + "y" * 300_000 + "]", "262,144"),
        ("queue: 'no good'", "queue"),
        ("retry: {max_attempts: 0}", "max_attempts"),
    ],
    ids=["priority", "metadata", "payload", "queue", "retry"],
)
@pytest.mark.parametrize("command", ["submit", "run"])
def test_what_is_refused_of_a_file_is_told_with_its_place_and_nothing_is_stored(
    perdure: Perdure, store: Path, tmp_path: Path, command: str, line: str, says: str
) -> None:
    rest = "" if line.startswith("payload") else "    payload: {seconds: 0}\n"
    text = f"name: bad\ntasks:\n  - name: good\n    {line}\n    kind: perdure.sleep\n{rest}"
    (tmp_path / "bad.yaml").write_text(text)
    answer = perdure("job", command, "bad.yaml", "--store", str(store))
    assert answer.code == 2
    last = answer.err.splitlines()[-1]
    assert last.startswith("perdure: bad.yaml:4:")
    assert says in last
    if store.exists():
        assert perdure("job", "list", "--json").json["jobs"] == []


def test_a_delay_that_the_file_asks_for_is_no_overhead(perdure: Perdure, job: dict[str, Any], tmp_path: Path) -> None:
    task = {"name": "late", "kind": "perdure.sleep", "payload": {"seconds": 0}, "delay": 1.5}
    (tmp_path / "late.json").write_text(json.dumps({"name": "late", "tasks": [task]}))
    told = perdure("job", "run", "late.json", "--json").json
    assert (told["asked"], told["critical_path"], told["ideal"]) == (1.5, 1.5, 1.5)
    assert told["makespan"] - told["bound"] == pytest.approx(told["overhead_ms_per_task"] / 1000)
    assert "are delays and retries" in perdure("job", "run", "late.json").out


def test_of_very_many_tasks_that_were_tried_again_only_some_are_asked_for_their_attempts(
    perdure: Perdure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"flaky_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{module}.py").write_text(
        "import perdure\n"
        "app = perdure.App()\n"
        '@app.task("flaky", retry=perdure.Retry(2, backoff="fixed", base=0, jitter=0))\n'
        "def flaky(*, ctx: perdure.Context) -> None:\n"
        "    if ctx.attempt == 1:\n"
        '        raise ValueError("not yet")\n'
    )
    tasks = [{"name": name, "kind": "flaky"} for name in "abc"]
    (tmp_path / "flaky.json").write_text(json.dumps({"name": "flaky", "tasks": tasks}))
    told = "more than 2 tasks were tried again: what the others waited for that counts as overhead"
    for limit, is_told in ((3, False), (2, True)):
        monkeypatch.setattr(job_run, "TRIED_MAX", limit)
        answer = perdure("job", "run", "flaky.json", "--app", f"{module}:app", "--json")
        assert (answer.code, told in answer.err) == (0, is_told), answer.err
