"""Looks once where each mutant makes a difference, and keeps what it saw until a source or a test changes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mutants.children import Child, Tell, answers
from mutants.differing import Differing
from mutants.plugin import Recorder
from mutants.predicates import Mutant
from mutants.side import Side
from simulation.run import run

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants"
SOURCES = ("src/perdure", "tests")
LOOKING_SECONDS = 3_600.0


class Known(NamedTuple):
    """Where each mutant makes a difference."""

    tests: Mapping[str, Sequence[str]]
    """By mutant: the quickest first."""
    lives: Mapping[str, Sequence[int]]
    """By mutant: the seeds."""
    seconds: Mapping[str, float]
    """By test that passes without a mutant."""


class Seen(NamedTuple):
    """What all tests and lives have shown."""

    noticed: dict[str, list[str]]
    """By test, the mutants that made a difference."""
    seconds: dict[str, float]
    failed: list[str]
    """Tests that do not pass while they are watched."""
    lives: dict[str, list[str]]
    """By seed, the mutants that made a difference."""

    def known(self) -> Known:
        """The same by mutant, without the tests that failed."""
        seconds = {test: took for test, took in self.seconds.items() if test not in self.failed}
        by_test = _turned({test: names for test, names in self.noticed.items() if test in seconds})
        by_mutant = {mutant: sorted(tests, key=seconds.__getitem__) for mutant, tests in by_test.items()}
        return Known(
            by_mutant, {mutant: list(map(int, seeds)) for mutant, seeds in _turned(self.lives).items()}, seconds
        )


def look(session: pytest.Session, side: Side, found: Sequence[Mutant], lives: int, processes: int) -> Known:
    """Run all tests and lives once, or remember what they have shown of these mutants."""
    path = KEPT / f"{side.world}.json"
    key = _key(session, lives)
    names = {each.name for each in found}
    kept = json.loads(path.read_text()) if path.exists() else {}
    if kept.get("key") == key and names <= set(kept["found"]):
        return Seen(*kept["seen"]).known()
    children = [
        Child(
            lambda tell, start=start: _record(session, side, found, range(start, lives, processes), tell),
            LOOKING_SECONDS,
        )  # type: ignore[misc]
        for start in range(processes)
    ]
    seen = Seen({}, {}, [], {})
    for answer in answers(children):
        if not answer.startswith("["):
            raise SystemExit(f"the tests or the lives do not go well without a mutant: {answer}")
        for all_of_it, part in zip(seen, json.loads(answer), strict=True):
            all_of_it.update(part) if isinstance(all_of_it, dict) else all_of_it.extend(part)
    for test in seen.failed:
        print(f"left out, it fails without a mutant: {test}", flush=True)
    KEPT.mkdir(exist_ok=True)
    path.write_text(json.dumps({"key": key, "found": sorted(names), "seen": seen}))
    return seen.known()


def told_by_sources() -> "hashlib._Hash":
    """A digest of all sources and tests."""
    told = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix in (".py", ".sql"):
                told.update(path.read_bytes())
    return told


def told_by_each_test() -> dict[str, str]:
    """A digest of each file of tests, by its path as pytest names it."""
    paths = (ROOT / "tests").rglob("*.py")
    return {path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _key(session: pytest.Session, lives: int) -> str:
    """A name for all that the outcome comes from."""
    told = told_by_sources()
    told.update(f"{lives} {[item.nodeid for item in session.items]}".encode())
    return told.hexdigest()


def _record(session: pytest.Session, side: Side, found: Sequence[Mutant], seeds: range, tell: Tell) -> None:
    """In a child: run every so many tests and lives, and tell which mutants made a difference in them."""
    differing = Differing(side, found)
    recorder = Recorder(differing)
    session.config.pluginmanager.register(recorder)
    lives: dict[int, list[str]] = {}
    with side.entered(), differing.watching():
        for item in session.items[seeds.start :: seeds.step]:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        for seed in seeds:
            differing.begin()
            if violations := run(seed).violations:
                tell(f"seed {seed} fails without a mutant: {violations}")
                return
            lives[seed] = differing.made()
    tell(json.dumps(Seen(recorder.tests, recorder.seconds, sorted(recorder.failed), lives)))  # type: ignore[arg-type]


def _turned(noticed: Mapping[Any, Sequence[str]]) -> dict[str, list[Any]]:
    """By mutant, what noticed it."""
    turned: dict[str, list[Any]] = {}
    for by, names in noticed.items():
        for mutant in names:
            turned.setdefault(mutant, []).append(by)
    return turned
