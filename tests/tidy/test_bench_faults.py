"""The faults beside the peers: a figure is measured or left out, a fault meets a system at work, errors are told."""

import time
from pathlib import Path
from typing import Any

import pytest
from bench.contestants import OURS
from bench.faults import cases, stage
from bench.faults.__main__ import EXPLAINED, HEAD, KEPT, row
from bench.faults.cases import CASES, Case
from bench.faults.notes import Notes
from bench.faults.stage import NotUnderLoad, Outcome, Stage


class Broken(Exception):
    """What a driver raises."""


class Server:
    """Counts what is unfinished, or cannot."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def unfinished(self, url: str, counted_by: str) -> int:
        if self.error is not None:
            raise self.error
        return 1


class Idle(Stage):
    """Starts no process: clients are answered with nothing, and there is no worker."""

    def __init__(self, folder: Path) -> None:
        self.server: Any = Server()
        self.name, self.url, self._counted_by, self.restarts = "idle", "url", "count", 0
        self.notes = Notes(folder)

    def start(self, *words: str) -> Any:
        return self

    def wait(self, seconds: float) -> None:
        return

    def work(self) -> None:
        return


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Idle:
    monkeypatch.setattr(stage, "STARTS_SECONDS", 0.0)
    monkeypatch.setattr(stage, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(cases, "POISONED_SECONDS", 0.0)
    return Idle(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_worker_that_never_starts_gives_no_figures(case: Case, idle: Idle) -> None:
    with pytest.raises(NotUnderLoad):
        case.run(idle)


def test_what_poison_does_not_measure_is_left_empty(idle: Idle) -> None:
    idle.notes.answered(0)
    for _ in range(3):
        idle.notes.effect("start", 0)
    outcome = cases.poison(idle)
    assert outcome == Outcome(1, None, None, None, 1, None, "3 runs")
    poison = next(case for case in CASES if case.run is cases.poison)
    assert row(OURS, poison, outcome) == "| perdure | poison (3) | 1 | - | - | - | 1 | - | 3 runs |"


def test_patience_counts_from_when_the_fault_was_over(idle: Idle) -> None:
    idle.notes.answered(0)
    waited: list[float] = []
    idle.until = lambda condition, seconds: waited.append(seconds) or False  # type: ignore
    idle.judge(time.monotonic() - 60.0, 100.0)
    assert waited[0] <= 40.0


def test_that_the_unfinished_cannot_be_counted_is_told(idle: Idle) -> None:
    idle.server.error = Broken()
    with pytest.raises(Broken):
        idle.judge(time.monotonic(), 0.0)


def test_the_published_table_has_the_columns_and_explanations_of_the_written_one() -> None:
    kept = KEPT.read_text()
    assert "\n".join(HEAD) in kept
    assert kept.endswith(EXPLAINED)
