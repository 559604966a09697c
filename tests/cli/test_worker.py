"""`perdure worker` and `perdure dev` as processes, and finding the user's app."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure.cli.loading import load_app
from perdure.cli.logs import configure
from perdure.cli.reload import first_change, snapshot
from perdure.errors import Malformed, Misuse
from perdure.settings import Settings

TASKS = """\
import perdure

app = perdure.App()


@app.task("greet")
async def greet(name: str) -> str:
    return "{word} " + name
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(store: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts `perdure ...` as a process; none is left after the test."""
    started: list[subprocess.Popen[str]] = []

    def process(*arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "perdure", *arguments]
        child = subprocess.Popen(command, cwd=tmp_path, env=os.environ, stderr=subprocess.PIPE, text=True)
        started.append(child)
        return child

    yield process
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=30)


def ended(child: "subprocess.Popen[str]") -> tuple[int, str]:
    _, errors = child.communicate(timeout=30)
    return child.returncode, errors


def test_a_worker_serves_its_app_until_sigterm(perdure: Perdure, start: Start, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(word="hello"))
    task_id = perdure("submit", "greet", '{"name": "ann"}').out.strip()
    worker = start("worker", "tasks:app", "--concurrency", "2")
    answer = perdure("task", "wait", task_id, "--timeout", "30", "--json")
    assert answer.json["tasks"][0]["result"] == "hello ann"
    [listed] = perdure("worker", "list", "--json").json["workers"]
    assert listed["pid"] == worker.pid
    assert "greet" in listed["kinds"]
    assert str(worker.pid) in perdure("worker", "list").out
    worker.send_signal(signal.SIGTERM)
    assert ended(worker)[0] == 0
    assert perdure("worker", "list", "--all", "--json").json["workers"][0]["left_at"] is not None


def test_a_worker_that_cannot_start_says_why_in_one_line(store: Path, start: Start, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import perdure\nraise RuntimeError('not today')\n")
    code, errors = ended(start("worker", "broken:app"))
    assert code == 2
    assert errors.startswith("perdure: module broken cannot be imported: RuntimeError: not today")
    assert "broken.py:2" in errors


def test_dev_starts_afresh_when_a_source_file_changes(perdure: Perdure, start: Start, tmp_path: Path) -> None:
    source = tmp_path / "tasks.py"
    source.write_text(TASKS.format(word="hello"))
    dev = start("dev", "tasks:app")
    first = perdure("submit", "greet", '{"name": "ann"}', "--wait", "--wait-timeout", "30", "--json")
    assert first.json["tasks"][0]["result"] == "hello ann"
    source.write_text(TASKS.format(word="good evening"))
    assert dev.stderr is not None
    while "changed: starting afresh" not in dev.stderr.readline():
        assert dev.poll() is None
    again = perdure("submit", "greet", '{"name": "ann"}', "--wait", "--wait-timeout", "30", "--json")
    assert again.json["tasks"][0]["result"] == "good evening ann"
    dev.send_signal(signal.SIGINT)
    assert ended(dev)[0] == 0


def test_dev_ends_where_no_change_of_a_source_file_could_bring_the_store(
    store: Path, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(word="hello"))
    store.write_text("this is no database, and it is long enough to be looked at as one: " * 20)
    code, errors = ended(start("dev", "tasks:app"))
    assert code == 3
    assert "is not an SQLite database" in errors


def test_a_worker_ends_with_the_command_that_started_it(perdure: Perdure, store: Path, tmp_path: Path) -> None:
    perdure("db", "migrate")
    command = [sys.executable, "-m", "perdure", "worker", "run", "--attached"]
    worker = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert worker.stdin is not None
    worker.stdin.close()
    assert worker.wait(30) == 0


def test_an_app_is_found_in_the_working_directory(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "found_here").mkdir()
    (tmp_path / "found_here" / "__init__.py").write_text("")
    (tmp_path / "found_here" / "tasks.py").write_text(TASKS.format(word="hi"))
    assert load_app("found_here.tasks:app").registry.find("greet") is not None


@pytest.mark.parametrize(
    ("target", "error", "fact"),
    [
        ("tasks", Malformed, "not MODULE:APP"),
        ("tasks.py:app", Misuse, "no module 'tasks'"),
        ("lonely.py:app", Misuse, "on the Python path; was lonely:app meant?"),
        ("./shop/lonely.py:it", Malformed, "not MODULE:APP, such as shop.tasks:app; was shop.lonely:it meant?"),
        ("shop/lonely", Malformed, "; was shop.lonely:app meant?"),
        ("a b:app", Malformed, "not MODULE:APP"),
        ("no_such_thing:app", Misuse, "there is no module 'no_such_thing' in "),
        ("lonely:aplication", Misuse, "no 'aplication'; it has lonely:app"),
        ("lonely:number", Misuse, "is of type int, not a perdure.App; it has lonely:app"),
        ("needs_more:app", Misuse, "cannot be imported: ModuleNotFoundError: No module named 'not_installed'"),
        ("misspelt:app", Misuse, "cannot be imported: SyntaxError"),
    ],
)
def test_what_is_not_an_app_is_refused(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, error: type[Exception], fact: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "lonely.py").write_text("import perdure\napp = perdure.App()\nnumber = 1\n")
    (tmp_path / "needs_more.py").write_text("import not_installed\n")
    (tmp_path / "misspelt.py").write_text("def :\n")
    for name in ("lonely", "needs_more", "misspelt"):
        sys.modules.pop(name, None)
    with pytest.raises(error) as caught:
        load_app(target)
    assert fact in str(caught.value)


def test_changes_are_new_gone_and_different_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "hidden.py").write_text("1")
    (tmp_path / "notes.txt").write_text("1")
    before = snapshot(tmp_path)
    assert list(before) == [str(tmp_path / "a.py")]
    assert first_change(before, snapshot(tmp_path)) is None
    (tmp_path / "b.py").write_text("1")
    assert first_change(before, snapshot(tmp_path)) == str(tmp_path / "b.py")
    (tmp_path / "b.py").unlink()
    (tmp_path / "a.py").write_text("22")
    assert first_change(before, snapshot(tmp_path)) == str(tmp_path / "a.py")
    (tmp_path / "a.py").unlink()
    assert first_change(before, snapshot(tmp_path)) == str(tmp_path / "a.py")


def test_log_lines_may_be_json(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("perdure.test")
    handlers = logging.root.handlers
    logging.root.handlers = []
    try:
        configure(Settings(), as_json=True)
        log.warning("it is %s", "late")
    finally:
        logging.root.handlers = handlers
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == ("warning", "perdure.test", "it is late")
