"""Runs many seeds on several processors."""

import functools
import multiprocessing
import multiprocessing.util
from collections.abc import Iterable
from typing import NamedTuple

from simulation.coverage import Coverage
from simulation.run import Verdict, run
from simulation.stage import Stage

SHOWN = 12


class Outcome(NamedTuple):
    """What the seeds showed together."""

    seeds: int
    failures: dict[int, list[str]]
    coverage: Coverage
    healed_seconds: float
    """The longest of all."""

    def told(self) -> str:
        """All of it, for people."""
        lines = [self.coverage.table(), f"  longest healing: {self.healed_seconds:.0f} s", ""]
        missing = self.coverage.missing()
        if missing:
            lines += ["never reached: " + ", ".join(missing)]
        for seed, violations in sorted(self.failures.items())[:SHOWN]:
            lines += [f"seed {seed} (again: PYTHONPATH=tests python -m simulation {seed}):"]
            lines += [f"    {violation}" for violation in violations[:5]]
        lines += [f"{len(self.failures)} of {self.seeds} seeds failed"]
        return "\n".join(lines)


def sweep(seeds: Iterable[int], processes: int) -> Outcome:
    """Run them all."""
    coverage, failures, longest, count = Coverage(), {}, 0.0, 0
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        for verdict in pool.imap_unordered(_run, seeds, chunksize=4):
            count += 1
            coverage.add(verdict.coverage)
            longest = max(longest, verdict.healed_seconds)
            if verdict.violations:
                failures[verdict.seed] = verdict.violations
    return Outcome(count, failures, coverage, longest)


@functools.cache
def _stage() -> Stage:
    """The stage of this process; it is gone with it."""
    stage = Stage()
    multiprocessing.util.Finalize(stage, stage.close, exitpriority=10)
    return stage


def _run(seed: int) -> Verdict:
    # The events stay behind: they are long, and the seed gives them again.
    return run(seed, _stage())._replace(events=[])
