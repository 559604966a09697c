"""Judges one mutant after the other, each in a process forked from one that has imported and collected everything."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

import pytest

from mutants.children import LOOK_SECONDS, Child, Tell
from mutants.looking import ROOT, Known, look
from mutants.plugin import Failures
from mutants.predicates import Mutant, mutants
from mutants.side import Side
from simulation.run import run

LIVES = 24
"""What no test catches is run through so many simulated lives."""
TESTS_MAX = 120
"""A mutant that makes a difference in more tests than this is given the quickest of them."""
SHARPER_MAX = 20
SHARPER_SECONDS = 5.0
"""What an error has caught is given so many tests more, for so long, in the hope of one that says what is wrong."""
A_LIFE = "a simulated life"
PATIENCE_SECONDS = 20.0
LIFE_SECONDS = 10.0
QUIET = ("-q", "--capture=no", "-p", "no:cacheprovider", "--no-header", "--tb=line", "--timeout=0")
REWRITTEN = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Helpers of the tests were imported before pytest could rewrite their assertions; they assert without."""


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
        self._told = told
        self._killers: dict[str, list[str]] = {}
        """By statement: the tests that caught a mutant of it, the latest first."""

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.items = [item for item in session.items if self._is_of_this_store(item)]
        begun = time.monotonic()
        lives = self._choice.lives if self._side.lives else 0
        known = look(session, self._side, self._found, lives, self._choice.processes)
        items = {item.nodeid: item for item in session.items if item.nodeid in known.seconds}
        print(
            f"{len(self._found)} mutants, {len(items)} tests, looked at in {time.monotonic() - begun:.0f} s", flush=True
        )
        # What few tests can tell apart comes first: it is judged soonest, and survives most likely.
        waiting = deque(sorted(self._found, key=lambda each: len(known.tests.get(each.name, ()))))
        busy = list[tuple[Generator[Child, str, Verdict], Child]]()
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
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            return True
        world = item.callspec.params.get("world", self._side.world)
        return world == self._side.world and self._side.foreign not in item.callspec.id

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
        caught_by, left, until = "", len(items), math.inf
        with self._side.entered():
            for item in items:
                if not left or time.monotonic() > until:
                    break
                left -= 1
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if failures.asserted:
                    caught_by = item.nodeid
                    break
                if failures.error and not caught_by:
                    caught_by = f"{item.nodeid}\n{failures.error}"
                    left, until = SHARPER_MAX, time.monotonic() + SHARPER_SECONDS
        tell(caught_by)

    def _live(self, seeds: Sequence[int], mutant: Mutant, tell: Tell) -> None:
        self._side.put(mutant.statement, mutant.sql)
        if any(run(seed).violations for seed in seeds):
            tell(A_LIFE)


def judge(side: Side, found: Sequence[Mutant], choice: Choice, told: Callable[[Verdict], None]) -> None:
    """Judge each mutant and tell the verdict."""
    os.chdir(ROOT)
    ignored = [f"--ignore={path}" for path in side.left_out]
    chosen = choice.tests or side.suites
    code = pytest.main([*QUIET, *REWRITTEN, *ignored, *chosen], plugins=[Judge(side, found, choice, told)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"the tests could not be collected (pytest ended with {code})")
