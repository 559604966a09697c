"""Which store a command and the app that it is given agree on."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure.cli.working import WorkOptions, the_app, work

PLAIN = """\
import perdure

app = perdure.App()


@app.task("double")
def double(number: int) -> int:
    return 2 * number
"""
FIXED = "import perdure\napp = perdure.App('fixed.db')\n"


@pytest.fixture(autouse=True)
def modules(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plain and a fixed app to be imported afresh; no store is named."""
    (tmp_path / "plain_shop.py").write_text(PLAIN)
    (tmp_path / "fixed_shop.py").write_text(FIXED)
    monkeypatch.delenv("PERDURE_STORE")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("plain_shop", "fixed_shop"):
        sys.modules.pop(name, None)


def test_an_app_without_a_store_of_its_own_takes_that_of_the_command() -> None:
    assert the_app("plain_shop:app", "here.db").settings.store == "here.db"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_job_of_such_an_app_runs_on_a_temporary_store(perdure: Perdure, tmp_path: Path, workers: str) -> None:
    job = {"name": "one", "tasks": [{"name": "a", "kind": "double", "payload": {"number": 4}}]}
    (tmp_path / "job.json").write_text(json.dumps(job))
    answer = perdure("job", "run", "job.json", "--app", "plain_shop:app", "--workers", workers, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["state"] == "succeeded"
    assert "PERDURE_STORE" not in os.environ
    assert not (tmp_path / "perdure.db").exists()


@pytest.mark.parametrize("command", ["worker", "serve"])
def test_an_app_of_another_store_is_not_bent_to_this_one(perdure: Perdure, command: str) -> None:
    answer = perdure(command, "fixed_shop:app", "--store", "here.db")
    assert answer.code == 2
    assert "PERDURE_STORE or --store says here.db, the app fixed_shop:app says fixed.db" in answer.err
    assert "fixed in its code" in answer.err


def test_a_job_of_an_app_with_a_fixed_store_says_how_to_run_it(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"name": "one", "tasks": [{"name": "a", "kind": "perdure.sleep"}]}')
    answer = perdure("job", "run", "job.json", "--app", "fixed_shop:app")
    assert answer.code == 2
    assert "say --store fixed.db" in answer.err


def test_a_worker_tells_that_its_app_has_another_store_than_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERDURE_STORE", "named.db")
    monkeypatch.setattr("perdure.cli.working.asyncio.run", lambda working: working.close())
    monkeypatch.setattr("perdure.cli.working.configure", lambda settings, as_json: None)
    assert work(WorkOptions("fixed_shop:app", None, {}, duties=True, attached=False, json_log=False)) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line == ("perdure: warning: fixed_shop:app works on its own store fixed.db, not on PERDURE_STORE's named.db")


def test_what_is_wrong_with_a_setting_is_told_as_it_is(perdure: Perdure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_CONCURRENCY", "many")
    assert perdure("worker", "plain_shop:app").err == "perdure: PERDURE_CONCURRENCY='many' is not a whole number\n"


def test_a_variable_that_means_nothing_is_told_once(perdure: Perdure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_CONCURENCY", "3")
    told = perdure("db", "migrate").err
    assert told.count("PERDURE_CONCURENCY is not a setting") == 1
    assert "did you mean PERDURE_CONCURRENCY?" in told
