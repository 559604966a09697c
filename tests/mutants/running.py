"""Runs the tests on one mutant after the other, each in a process forked from one that has imported everything."""

import contextlib
import functools
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from mutants.hand_made import replace
from mutants.plugin import Chosen, Recorder
from mutants.predicates import Mutant, mutants
from perdure.store.sqlite.opening import open_writing
from perdure.store.sqlite.schema import known_steps, take_steps
from perdure.store.sqlite.statements import STATEMENTS
from simulation.run import run

ROOT = Path(__file__).parents[2]
SUITES = ("tests/conformance", "tests/backends/sqlite", "tests/engine/test_lose_on_store.py")
FIRST = 60
"""So many of the most specific tests run first; the others follow only when those do not catch the mutant."""
PATIENCE_SECONDS = 90.0
SLOW = ("tests/conformance/test_model.py",)
"""Random lives catch nearly everything, and take a minute for it: left out, so that what is left must be sharp."""
LIVES = 24
"""What no test catches is run through so many simulated lives."""
QUIET = (
    "-q",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-x",
    "-p",
    "no:cacheprovider",
    "--no-header",
    "--tb=line",
    *(f"--ignore={path}" for path in SLOW),
)


class Tests(NamedTuple):
    """What is known of the tests."""

    statements: dict[str, list[str]]
    """By test."""
    seconds: dict[str, float]

    def of(self, statement: str) -> list[str]:
        """Those that run a statement: the ones that run few others first."""
        found = [test for test, ran in self.statements.items() if statement in ran]
        return sorted(found, key=lambda test: (len(self.statements[test]), self.seconds[test]))


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
        with contextlib.closing(_SCRATCH[0].cursor()) as cursor:
            cursor.execute(f"EXPLAIN {sql}", apsw_bindings())
    except apsw.SQLError:
        return False
    return True


class _Anything(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return None


def apsw_bindings() -> Any:
    """Bindings that have a null for every name."""
    return _Anything()


def record(lives: int) -> Tests:
    """Run all tests once and note which statements each one runs. They must pass."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recorded.json"
        code = _forked(lambda: pytest.main([*QUIET, *SUITES], plugins=[Recorder(path)]), 1_800.0)
        if code != 0:
            raise SystemExit(f"the tests do not pass without a mutant (pytest ended with {code})")
        found = json.loads(path.read_text())
    if _forked(functools.partial(_live, lives), PATIENCE_SECONDS + 10 * lives):
        raise SystemExit("simulated lives go wrong without a mutant")
    return Tests(
        {test: each["statements"] for test, each in found.items()},
        {test: each["seconds"] for test, each in found.items()},
    )


def caught(mutant: Mutant, tests: Tests, lives: int) -> bool:
    """Whether a test that runs the statement fails, or a simulated life goes wrong."""
    order = tests.of(mutant.statement)
    for part in (order[:FIRST], order[FIRST:]):
        act = functools.partial(_run, mutant, part)
        if part and _forked(act, _patience(part, tests)) != 0:
            return True
    return _forked(functools.partial(_live, lives, mutant), PATIENCE_SECONDS + 10 * lives) != 0


def _patience(part: Sequence[str], tests: Tests) -> float:
    return PATIENCE_SECONDS + 10 * sum(tests.seconds[test] for test in part)


def _run(mutant: Mutant, order: Sequence[str]) -> int:
    replace(mutant.statement, mutant.sql)
    files = sorted({test.partition("::")[0] for test in order})
    return pytest.main([*QUIET, *files], plugins=[Chosen(order)])


def _live(lives: int, mutant: Mutant | None = None) -> int:
    if mutant is not None:
        replace(mutant.statement, mutant.sql)
    return int(any(run(seed).violations for seed in range(lives)))


def _forked(act: Callable[[], int], seconds: float) -> int:
    """The exit code of an act in a child; it is killed, which counts as a failure, when it takes too long."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _silence()
        signal.alarm(round(seconds))
        code = 70
        try:
            code = act()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _silence() -> None:
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if not os.environ.get("PERDURE_MUTANTS_LOUD"):
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)


def warm_up() -> None:
    """Import all that the children need."""
    os.chdir(ROOT)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["--collect-only", *QUIET, *SUITES])


def judged(found: Sequence[Mutant], tests: Tests, processes: int, lives: int) -> Iterator[tuple[Mutant, bool, float]]:
    """Each mutant, whether it was caught, and the seconds it took; `processes` at a time."""
    waiting, running = list(reversed(found)), {}
    while waiting or running:
        while waiting and len(running) < processes:
            mutant = waiting.pop()
            child = os.fork()
            if not child:
                os._exit(0 if caught(mutant, tests, lives) else 3)
            running[child] = (mutant, time.monotonic())
        child, status = os.wait()
        mutant, begun = running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 3):
            raise SystemExit(f"judging {mutant.name} ended with {code}")
        yield mutant, code == 0, time.monotonic() - begun
