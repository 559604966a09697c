"""The checkers are checked: each fault that a person would make is noticed, by the simulation and by a test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutants.hand_made import HAND_MADE, HandMade
from simulation.run import run
from simulation.stage import Stage

ROOT = Path(__file__).parents[2]
LIVES = 300
"""Most are noticed in the first few; the rarest in one of two hundred."""
BEYOND_THE_SIMULATION = frozenset(
    {"no token: who knows the attempt may settle it", "nothing is written through to the disk"}
)
"""In a simulated life nobody forges, and no power is lost."""
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "mutants.plugin", "-k", "not postgres and not cockroachdb")
"""The faults are put into the store on SQLite."""
TESTS = (
    "tests/conformance/test_leases.py",
    "tests/backends/sqlite/test_writing.py",
    "tests/conformance/test_jobs.py",
    "tests/conformance/test_stale_attempts.py",
    "tests/conformance/test_duties.py",
)


@pytest.mark.parametrize(
    "mutant", [each for each in HAND_MADE if each.name not in BEYOND_THE_SIMULATION], ids=lambda each: each.name
)
def test_a_simulated_life_notices(mutant: HandMade) -> None:
    undo = mutant.put()
    try:
        # A stage of its own: statements that it has prepared have the fault in them.
        with Stage() as stage:
            assert any(run(seed, stage).violations for seed in (mutant.life, *range(LIVES)))
    finally:
        undo()


@pytest.mark.parametrize("mutant", HAND_MADE, ids=lambda each: each.name)
def test_a_test_of_one_rule_notices(mutant: HandMade) -> None:
    environment = os.environ | {"PERDURE_MUTANT": mutant.name, "PYTHONPATH": str(ROOT / "tests")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *(mutant.tests or TESTS)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stdout[-2_000:]
