"""`PYTHONPATH=tests python -m simulation SEED` runs one seed and prints its events; `--seeds N` runs many."""

import argparse
import sys
import time

from simulation.run import run
from simulation.sweep import sweep


def main() -> int:
    """Run what was asked for; 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m simulation")
    parser.add_argument("seed", type=int, nargs="?", help="run this one and print what happened")
    parser.add_argument("--seeds", type=int, default=0, help="run that many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if given.seed is not None:
        verdict = run(given.seed)
        for at_us, who, what, detail in verdict.events:
            print(f"{at_us / 1e6:10.4f} {who:<12} {what} {detail}")
        print(f"healed in {verdict.healed_seconds:.0f} s")
        print("\n".join(verdict.violations) or "nothing is wrong")
        return 1 if verdict.violations else 0
    begun = time.monotonic()
    outcome = sweep(range(given.first, given.first + given.seeds), given.processes)
    print(outcome.told())
    print(f"{given.seeds} seeds in {time.monotonic() - begun:.0f} s")
    return 1 if outcome.failures or outcome.coverage.missing() else 0


if __name__ == "__main__":
    sys.exit(main())
