"""A judging that was stopped goes on: what was caught stays so, what survived is judged again after any change."""

import hashlib
from pathlib import Path

import pytest

from mutants import verdicts
from mutants.predicates import Mutant
from mutants.running import Verdict
from mutants.verdicts import Verdicts

CAUGHT = Mutant("claim_pick", 0, "seq > :after", "SELECT 1")
SURVIVED = Mutant("claim_pick", 1, "state = 'queued'", "SELECT 2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(verdicts, "KEPT", tmp_path)
    kept = Verdicts("sqlite")
    kept.keep(Verdict(CAUGHT, "a test", "", True, 1.0))
    kept.keep(Verdict(SURVIVED, "", "", True, 1.0))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_verdicts_are_kept_while_nothing_changes() -> None:
    kept = Verdicts("sqlite").kept([CAUGHT, SURVIVED])
    assert [(each.mutant, each.caught_by) for each in kept] == [(CAUGHT, "a test"), (SURVIVED, "")]


@pytest.mark.usefixtures("folder")
def test_a_statement_that_was_changed_is_judged_again() -> None:
    assert Verdicts("sqlite").kept([CAUGHT._replace(sql="SELECT 3")]) == []


@pytest.mark.usefixtures("folder")
def test_what_survived_is_judged_again_when_a_test_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "told_by_sources", lambda: hashlib.sha256(b"another test"))
    kept = Verdicts("sqlite").kept([CAUGHT, SURVIVED])
    assert [each.mutant for each in kept] == [CAUGHT]
