"""Judges one mutant after the other, each in a process forked from one that has imported and collected everything."""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mutants.children import LOOK_SECONDS, Child, Tell, answers
from mutants.differing import Differing
from mutants.plugin import Failures, Recorder
from mutants.predicates import Mutant, mutants
from mutants.side import Side
from simulation.run import run

ROOT = Path(__file__).parents[2]
LIVES = 24
"""What no test catches is run through so many simulated lives."""
TESTS_MAX = 120
"""A mutant that makes a difference in more tests than this is given the quickest of them."""
SHARPER_MAX = 40
"""What an error has caught is given so many tests more, in the hope of one that says what is wrong."""
A_LIFE = "a simulated life"
PATIENCE_SECONDS = 20.0
LOOKING_SECONDS = 3_600.0
LIFE_SECONDS = 10.0
QUIET = ("-q", "--capture=no", "-p", "no:cacheprovider", "--no-header", "--tb=line", "--timeout=0")
REWRITTEN = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Helpers of the tests were imported before pytest could rewrite their assertions; they assert without."""


class Known(NamedTuple):
    """Where each mutant makes a difference."""

    tests: Mapping[str, Sequence[str]]
    """By mutant: the quickest first."""
    lives: Mapping[str, Sequence[int]]
    """By mutant: the seeds."""
    seconds: Mapping[str, float]
    """By test."""


class Verdict(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant
    caught_by: str
    """A test, or what else noticed; empty when nothing did."""
    error: str
    """What the test ran into, where no assertion of any test said what is wrong."""
    made_a_difference: bool
    """Whether it ever answered or wrote anything else than the statement itself."""
    seconds: float


class Choice(NamedTuple):
    """How to judge."""

    lives: int = LIVES
    """Simulated lives for what no test catches."""
    processes: int = 2
    tests: Sequence[str] = ()
    """Folders and files instead of all that hold the store."""


def all_mutants(side: Side, only: Sequence[str] = ()) -> list[Mutant]:
    """Every predicate of every statement that is not a view, dropped in turn."""
    statements = side.statements()
    names = [name for name in sorted(statements) if not name.startswith("view_")]
    chosen = [name for name in names if not only or any(name.startswith(prefix) for prefix in only)]
    return [side.runnable(mutant) for name in chosen for mutant in mutants(name, statements[name], side.words)]


class Judge:
    """A plugin that runs the collected tests on each mutant instead of running them once."""

    def __init__(self, side: Side, found: Sequence[Mutant], choice: Choice, told: Callable[[Verdict], None]) -> None:
        self._side = side
        self._found = found
        self._choice = choice
        self._lives = choice.lives if side.lives else 0
        self._told = told
        self._killers: dict[str, list[str]] = {}
        """By statement: the tests that caught a mutant of it, the latest first."""

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.items = [item for item in session.items if self._is_of_this_store(item)]
        begun = time.monotonic()
        known = self._look(session)
        items = {item.nodeid: item for item in session.items if item.nodeid in known.seconds}
        print(
            f"{len(self._found)} mutants, {len(items)} tests, looked at in {time.monotonic() - begun:.0f} s", flush=True
        )
        waiting, busy = deque(self._found), list[tuple[Generator[Child, str, Verdict], Child]]()
        while waiting or busy:
            while waiting and len(busy) < self._choice.processes:
                case = self._judging(waiting.popleft(), known, items)
                busy = self._going_on(case, None, busy)
            time.sleep(LOOK_SECONDS)
            for each in list(busy):
                if (answer := each[1].look()) is not None:
                    busy = self._going_on(each[0], answer, [other for other in busy if other is not each])
        return True

    def _going_on(
        self,
        case: Generator[Child, str, Verdict],
        answer: str | None,
        busy: list[tuple[Generator[Child, str, Verdict], Child]],
    ) -> list[tuple[Generator[Child, str, Verdict], Child]]:
        """Those that are busy, this case among them unless it has its verdict now."""
        try:
            child = next(case) if answer is None else case.send(answer)
        except StopIteration as ended:
            self._told(ended.value)
            return busy
        return [*busy, (case, child)]

    def _is_of_this_store(self, item: pytest.Item) -> bool:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        return bool(given.get("world", self._side.world) == self._side.world)

    # Looking where mutants make a difference

    def _look(self, session: pytest.Session) -> Known:
        """Run all tests and lives once. A test that does not pass while it is watched is left out."""
        count = self._choice.processes
        children = [
            Child(lambda tell, start=start: self._record(session, start, tell), LOOKING_SECONDS)  # type: ignore[misc]
            for start in range(count)
        ]
        told = [_understood(answer) for answer in answers(children)]
        seconds: dict[str, float] = {}
        noticed: dict[str, list[str]] = {}
        lives: dict[str, list[str]] = {}
        watched: set[str] = set()
        for tests, took, failed, statements, seeds in told:
            seconds |= {test: each for test, each in took.items() if test not in failed}
            noticed |= {test: names for test, names in tests.items() if test not in failed}
            lives |= seeds
            watched.update(statements)
            for test in failed:
                print(f"left out, it fails without a mutant: {test}", flush=True)
        by_mutant = {mutant: sorted(by, key=seconds.__getitem__) for mutant, by in _turned(noticed).items()}
        everything = sorted(seconds, key=seconds.__getitem__)
        by_mutant |= {each.name: everything for each in self._found if each.statement not in watched}
        return Known(by_mutant, {mutant: list(map(int, by)) for mutant, by in _turned(lives).items()}, seconds)

    def _record(self, session: pytest.Session, start: int, tell: Tell) -> None:
        """In a child: run every so many tests and lives, and tell which mutants made a difference in them."""
        differing = Differing(self._side, self._found)
        recorder = Recorder(differing)
        session.config.pluginmanager.register(recorder)
        seeds: dict[int, list[str]] = {}
        with self._side.entered(), differing.watching():
            for item in session.items[start :: self._choice.processes]:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            for seed in range(start, self._lives, self._choice.processes):
                differing.noticed.clear()
                if violations := run(seed).violations:
                    tell(f"seed {seed} fails without a mutant: {violations}")
                    return
                seeds[seed] = sorted(differing.noticed)
        told = [recorder.tests, recorder.seconds, sorted(recorder.failed), sorted(differing.watched), seeds]
        tell(json.dumps(told))

    # Judging

    def _judging(
        self, mutant: Mutant, known: Known, items: Mapping[str, pytest.Item]
    ) -> Generator[Child, str, Verdict]:
        """Which test fails, or whether a simulated life goes wrong, of those in which the mutant makes a difference."""
        begun = time.monotonic()
        tests = known.tests.get(mutant.name, ())
        killers = [test for test in self._killers.get(mutant.statement, []) if test in tests]
        order = [*killers, *(test for test in tests if test not in killers)][:TESTS_MAX]
        caught_by, error = "", ""
        if order:
            patience = PATIENCE_SECONDS + 5 * sum(known.seconds[test] for test in order)
            answer = yield Child(lambda tell: self._try([items[test] for test in order], mutant, tell), patience)
            caught_by, _, error = answer.partition("\n")
        if not caught_by and (seeds := known.lives.get(mutant.name)):
            caught_by = yield Child(
                lambda tell: self._live(seeds, mutant, tell), PATIENCE_SECONDS + LIFE_SECONDS * len(seeds)
            )
        if caught_by in items:
            killers = self._killers.setdefault(mutant.statement, [])
            if caught_by in killers:
                killers.remove(caught_by)
            killers.insert(0, caught_by)
        tells_apart = bool(tests or known.lives.get(mutant.name))
        return Verdict(mutant, caught_by, error, tells_apart, time.monotonic() - begun)

    def _try(self, items: Sequence[pytest.Item], mutant: Mutant, tell: Tell) -> None:
        """In a child: tell the first test that fails; one that fails with an assertion is preferred."""
        failures = Failures()
        items[0].config.pluginmanager.register(failures)
        self._side.put(mutant.statement, mutant.sql)
        caught_by, caught_at = "", len(items)
        with self._side.entered():
            for place, item in enumerate(items):
                if place > caught_at + SHARPER_MAX:
                    break
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if failures.asserted:
                    caught_by = item.nodeid
                    break
                if failures.error and not caught_by:
                    caught_by, caught_at = f"{item.nodeid}\n{failures.error}", place
        tell(caught_by)

    def _live(self, seeds: Sequence[int], mutant: Mutant, tell: Tell) -> None:
        self._side.put(mutant.statement, mutant.sql)
        if any(run(seed).violations for seed in seeds):
            tell(A_LIFE)


def _understood(answer: str) -> list[Any]:
    if not answer.startswith("["):
        raise SystemExit(f"the tests or the lives do not go well without a mutant: {answer}")
    told: list[Any] = json.loads(answer)
    return told


def _turned(noticed: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By mutant, what noticed it."""
    turned: dict[str, list[str]] = {}
    for by, names in noticed.items():
        for mutant in names:
            turned.setdefault(mutant, []).append(by)
    return turned


def judge(side: Side, found: Sequence[Mutant], choice: Choice, told: Callable[[Verdict], None]) -> None:
    """Judge each mutant and tell the verdict."""
    os.chdir(ROOT)
    ignored = [f"--ignore={path}" for path in side.left_out]
    chosen = choice.tests or side.suites
    code = pytest.main([*QUIET, *REWRITTEN, *ignored, *chosen], plugins=[Judge(side, found, choice, told)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"the tests could not be collected (pytest ended with {code})")
