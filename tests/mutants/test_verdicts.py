"""A judging that was stopped goes on: a verdict is kept while what it was judged with is what it was."""

import json
from pathlib import Path

import pytest

from mutants import looking, verdicts
from mutants.predicates import Mutant
from mutants.running import A_LIFE, Verdict
from mutants.verdicts import Verdicts

CAUGHT = Mutant("claim_pick", 0, "seq > :after", "SELECT 1")
SURVIVED = Mutant("claim_pick", 1, "state = 'queued'", "SELECT 2")
LIVED = Mutant("claim_pick", 2, "lane = :lane", "SELECT 3")
BY = "tests/conformance/test_claims.py::test_order[sqlite]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(looking, "ROOT", tmp_path)
    monkeypatch.setattr(verdicts, "KEPT", tmp_path / "kept")
    (tmp_path / "tests/conformance").mkdir(parents=True)
    (tmp_path / "tests/conformance/test_claims.py").write_text("assert order == [1, 2]")
    (tmp_path / "tests/test_others.py").write_text("assert True")
    kept = Verdicts("sqlite")
    kept.keep(Verdict(CAUGHT, BY, "", True, 1.0))
    kept.keep(Verdict(SURVIVED, "", "", True, 1.0))
    kept.keep(Verdict(LIVED, A_LIFE, "", True, 1.0))
    return tmp_path


def kept_now() -> list[Mutant]:
    return [each.mutant for each in Verdicts("sqlite").kept([CAUGHT, SURVIVED, LIVED])]


@pytest.mark.usefixtures("folder")
def test_verdicts_are_kept_while_nothing_changes() -> None:
    kept = Verdicts("sqlite").kept([CAUGHT, SURVIVED, LIVED])
    assert [(each.mutant, each.caught_by) for each in kept] == [(CAUGHT, BY), (SURVIVED, ""), (LIVED, A_LIFE)]


@pytest.mark.usefixtures("folder")
def test_a_statement_that_was_changed_is_judged_again() -> None:
    assert Verdicts("sqlite").kept([CAUGHT._replace(sql="SELECT 3")]) == []


def test_what_no_test_caught_is_judged_again_when_another_test_has_changed(folder: Path) -> None:
    (folder / "tests/test_others.py").write_text("assert more")
    assert kept_now() == [CAUGHT]


def test_what_a_test_caught_is_judged_again_when_that_test_is_weakened(folder: Path) -> None:
    (folder / "tests/conformance/test_claims.py").write_text("assert order")
    assert kept_now() == []


def test_what_a_test_caught_is_judged_again_when_that_test_is_gone(folder: Path) -> None:
    (folder / "tests/conformance/test_claims.py").unlink()
    assert kept_now() == []


def test_what_was_caught_stays_so_when_it_is_kept_beside_a_later_verdict(folder: Path) -> None:
    (folder / "tests/test_others.py").write_text("assert more")
    Verdicts("sqlite").keep(Verdict(SURVIVED, "", "", True, 1.0))
    assert kept_now() == [CAUGHT, SURVIVED]


def test_what_was_kept_with_a_digest_of_everything_is_judged_again(folder: Path) -> None:
    path = folder / "kept/sqlite-verdicts.json"
    everything = looking.told_by_sources().hexdigest()
    path.write_text(json.dumps({key: [*line[:3], everything] for key, line in json.loads(path.read_text()).items()}))
    assert kept_now() == [SURVIVED, LIVED]
