"""Many lives of the whole system in virtual time, each with its own faults, judged by an account kept outside."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simulation.run import run
from simulation.sweep import sweep

SEEDS = int(os.environ.get("PERDURE_SIMULATION_SEEDS", "2000"))
PROCESSES = min(os.cpu_count() or 1, 4)
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("seed", [12, 14])
def test_a_seed_gives_the_same_events_every_time(seed: int) -> None:
    first, second = run(seed), run(seed)
    assert first.events == second.events
    assert len(first.events) > 100


def test_a_seed_gives_the_same_events_in_every_process() -> None:
    told = {_told_by_a_process(seed=13, hash_seed=hash_seed) for hash_seed in ("1", "2")}
    assert len(told) == 1


def _told_by_a_process(seed: int, hash_seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TESTS)}
    ran = subprocess.run(
        [sys.executable, "-m", "simulation", str(seed)], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.timeout(1800)
def test_no_life_breaks_an_invariant_and_together_they_reach_everything(
    record_property: Callable[[str, object], None],
) -> None:
    outcome = sweep(range(SEEDS), PROCESSES)
    record_property("told", outcome.told())
    assert not outcome.failures, outcome.told()
    assert not outcome.coverage.missing(), outcome.told()
