"""Judges one mutant after the other, each in a process forked from one that has imported and collected everything."""

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import apsw.ext
import pytest

from mutants.differing import Differing
from mutants.hand_made import replace
from mutants.plugin import Recorder
from mutants.predicates import Mutant, mutants
from perdure.store.sqlite.opening import open_writing
from perdure.store.sqlite.schema import known_steps, take_steps
from perdure.store.sqlite.statements import STATEMENTS
from simulation.run import run

ROOT = Path(__file__).parents[2]
SUITES = ("tests/conformance", "tests/backends/sqlite", "tests/engine/test_lose_on_store.py")
SLOW = ("tests/conformance/test_model.py",)
"""Random lives catch nearly everything, and take a minute for it: left out, so that what is left must be sharp."""
LIVES = 24
"""What no test catches is run through so many simulated lives."""
TESTS_MAX = 120
"""A mutant that makes a difference in more tests than this is given the quickest of them."""
A_LIFE = "a simulated life"
TOO_LONG = "it takes too long"
PATIENCE_SECONDS = 20.0
LOOK_SECONDS = 0.02
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
    made_a_difference: bool
    """Whether it ever answered or wrote anything else than the statement itself."""
    seconds: float


def all_mutants(only: Sequence[str] = ()) -> list[Mutant]:
    """Every predicate of every statement that is not a view, dropped in turn."""
    names = [name for name in sorted(STATEMENTS) if not name.startswith("view_")]
    chosen = [name for name in names if not only or any(name.startswith(prefix) for prefix in only)]
    return [_runnable(mutant) for name in chosen for mutant in mutants(name, STATEMENTS[name])]


def _runnable(mutant: Mutant) -> Mutant:
    """Without the index hint, where that needs the dropped predicate: the planner must not be what catches it."""
    if _compiles(mutant.sql):
        return mutant
    free = mutant._replace(sql=re.sub(r"\sINDEXED BY \w+", "", mutant.sql))
    if not _compiles(free.sql):
        raise SystemExit(f"this mutant is no SQL: {mutant.name}\n{mutant.sql}")
    return free


_SCRATCH: list[apsw.Connection] = []


def _compiles(sql: str) -> bool:
    if not _SCRATCH:
        connection = open_writing(":memory:", 1.0)
        take_steps(connection, known_steps(), 1)
        _SCRATCH.append(connection)
    try:
        apsw.ext.query_info(_SCRATCH[0], sql)
    except apsw.SQLError:
        return False
    return True


class Judge:
    """A plugin that runs the collected tests on each mutant instead of running them once."""

    def __init__(self, found: Sequence[Mutant], lives: int, told: Callable[[Verdict], None]) -> None:
        self._found = found
        self._lives = lives
        self._told = told
        self._killers: dict[str, list[str]] = {}
        """By statement: the tests that caught a mutant of it, the latest first."""

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.items = [item for item in session.items if _on_sqlite(item)]
        items = {item.nodeid: item for item in session.items}
        known = self._look(session)
        print(f"{len(self._found)} mutants, {len(items)} tests", flush=True)
        for mutant in self._found:
            begun = time.monotonic()
            caught_by = self._judged(mutant, known, items)
            if caught_by in items:
                killers = self._killers.setdefault(mutant.statement, [])
                if caught_by in killers:
                    killers.remove(caught_by)
                killers.insert(0, caught_by)
            tells_apart = bool(known.tests.get(mutant.name) or known.lives.get(mutant.name))
            self._told(Verdict(mutant, caught_by, tells_apart, time.monotonic() - begun))
        return True

    def _look(self, session: pytest.Session) -> Known:
        """Run all tests and lives once, and note where mutants make a difference. All must pass without a mutant."""
        differing = Differing(self._found)
        recorder = Recorder(differing)

        def record(tell: Callable[[str], None]) -> None:
            session.config.pluginmanager.register(recorder)
            with differing.watching():
                _run_until_one_fails(session.items, tell)
            tell(json.dumps([recorder.tests, recorder.seconds, sorted(differing.watched)]))

        def live(tell: Callable[[str], None]) -> None:
            noticed: dict[int, list[str]] = {}
            with differing.watching():
                for seed in range(self._lives):
                    differing.noticed.clear()
                    if run(seed).violations:
                        tell(f"seed {seed}")
                        return
                    noticed[seed] = sorted(differing.noticed)
            tell(json.dumps([noticed]))

        tests, seconds, watched = _answered(forked(record, 180 * PATIENCE_SECONDS), "a test")
        (lives,) = _answered(forked(live, self._lives * 60 * LIFE_SECONDS), "a simulated life")
        by_mutant = {mutant: sorted(told, key=seconds.__getitem__) for mutant, told in _turned(tests).items()}
        everything = sorted(seconds, key=seconds.__getitem__)
        by_mutant |= {each.name: everything for each in self._found if each.statement not in watched}
        return Known(by_mutant, {mutant: list(map(int, told)) for mutant, told in _turned(lives).items()}, seconds)

    def _judged(self, mutant: Mutant, known: Known, items: Mapping[str, pytest.Item]) -> str:
        """Which test fails, or whether a simulated life goes wrong, of those in which the mutant makes a difference."""
        tests = known.tests.get(mutant.name, ())
        killers = [test for test in self._killers.get(mutant.statement, []) if test in tests]
        order = [*killers, *(test for test in tests if test not in killers)][:TESTS_MAX]

        def act(tell: Callable[[str], None]) -> None:
            replace(mutant.statement, mutant.sql)
            _run_until_one_fails([items[test] for test in order], tell)

        def live(tell: Callable[[str], None]) -> None:
            replace(mutant.statement, mutant.sql)
            if any(run(seed).violations for seed in known.lives[mutant.name]):
                tell(A_LIFE)

        caught_by = forked(act, PATIENCE_SECONDS + 5 * sum(known.seconds[test] for test in order)) if order else ""
        if not caught_by and known.lives.get(mutant.name):
            caught_by = forked(live, PATIENCE_SECONDS + LIFE_SECONDS * len(known.lives[mutant.name]))
        return caught_by


def _on_sqlite(item: pytest.Item) -> bool:
    """Not a test of another store: a mutant is of SQLite's statements."""
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return bool(given.get("world", "sqlite") == "sqlite")


def _answered(answer: str, what: str) -> list[Any]:
    if not answer.startswith("["):
        raise SystemExit(f"{what} does not go well without a mutant: {answer}")
    told: list[Any] = json.loads(answer)
    return told


def _turned(noticed: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By mutant, what noticed it."""
    turned: dict[str, list[str]] = {}
    for by, names in noticed.items():
        for mutant in names:
            turned.setdefault(mutant, []).append(by)
    return turned


def _run_until_one_fails(items: Sequence[pytest.Item], tell: Callable[[str], None]) -> None:
    """Tell the first test that fails."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            tell(item.nodeid)
            return


def forked(act: Callable[[Callable[[str], None]], None], seconds: float) -> str:
    """What an act in a child tells first; it is killed, which counts as a failure, when it takes too long.

    The seconds are counted while this process runs: who stops both with a signal does not use up patience.
    """
    sys.stdout.flush()
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if not child:
            _act(act, answer.fileno())
        code = _ended(child, seconds)
        if code is None:
            return TOO_LONG
        answer.seek(0)
        return answer.read() or ("" if code == 0 else f"it ends with {code}")


def _act(act: Callable[[Callable[[str], None]], None], answer: int) -> None:
    code = 70
    try:
        os.setpgid(0, 0)
        _silence()
        act(lambda told: os.pwrite(answer, told.encode(), 0) and None)
        code = 0
    finally:
        os._exit(code)


def _ended(child: int, seconds: float) -> int | None:
    """The exit code; None when it had to be killed."""
    for _ in range(round(seconds / LOOK_SECONDS)):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(LOOK_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if not os.environ.get("PERDURE_MUTANTS_LOUD"):
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)


def judge(found: Sequence[Mutant], lives: int, told: Callable[[Verdict], None]) -> None:
    """Judge each mutant and tell the verdict."""
    os.chdir(ROOT)
    ignored = [f"--ignore={path}" for path in SLOW]
    code = pytest.main([*QUIET, *REWRITTEN, *ignored, *SUITES], plugins=[Judge(found, lives, told)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"the tests could not be collected (pytest ended with {code})")
