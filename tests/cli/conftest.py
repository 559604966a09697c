"""Command lines run in this process, on a store of the test's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perdure.cli.main import run


class Answer(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def problem(self) -> dict[str, Any]:
        """The one JSON object on standard error."""
        [line] = self.err.splitlines()
        problem: dict[str, Any] = json.loads(line)
        return problem


Perdure = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of this test's store, named by the environment; the working directory is the test's own too."""
    path = tmp_path / "store.db"
    monkeypatch.setenv("PERDURE_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def perdure(store: Path, capsys: pytest.CaptureFixture[str]) -> Perdure:
    """Runs one command line."""

    def command(*arguments: str) -> Answer:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return command
