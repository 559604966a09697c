"""The same faults for perdure and its peers, at their documented reliable settings: `python -m bench.faults`.

    python -m bench.faults [--systems perdure,pgqueuer] [--cases worker,poison] [--write]

Judged by what handlers and clients noted outside of the systems. `--write` keeps the table in bench/FAULTS.md.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.contestants import CELERY, OURS, PGQUEUER, PROCRASTINATE, Contestant
from bench.environments import NotInstalled
from bench.faults.cases import CASES, Case
from bench.faults.servers import serving
from bench.faults.stage import NotUnderLoad, Outcome, stage

SYSTEMS = (OURS, PGQUEUER, PROCRASTINATE, CELERY)
KEPT = Path(__file__).parents[1] / "FAULTS.md"
HEAD = (
    "| system | case | tasks | lost | ended twice | begun twice | unfinished | s to the last end | note |",
    "|---|---|---|---|---|---|---|---|---|",
)
EXPLAINED = """
lost: acknowledged, and not run to the end within 100 s of the last fault. ended twice: the handler came to its end
more than once. begun twice: what was under way at the fault has to be, where its run cannot have been finished.
unfinished: by the system's own tables at the end. -: not measured in this case.

Leases, heartbeats and visibility are ten seconds wherever that can be said, eight tasks at once, the same supervisor
(a worker that has ended is started again after a second), the same handlers. Keys (idempotency key, `dedupe_key`,
`queueing_lock`) are used where there are any; Procrastinate looks for stalled jobs each minute, as its documentation
shows; Celery acknowledges late, on a Valkey that syncs each write.
"""


def row(contestant: Contestant, case: Case, outcome: Outcome) -> str:
    """One line of the table."""
    measured = (outcome.tasks, outcome.lost, outcome.ended_twice, outcome.begun_twice, outcome.unfinished)
    seconds = None if outcome.seconds is None else f"{outcome.seconds:.1f}"
    figures = " | ".join("-" if each is None else str(each) for each in (*measured, seconds))
    return f"| {contestant.name} | {case.name} ({case.numbers}) | {figures} | {outcome.note} |"


def play(contestants: list[Contestant], cases: list[Case]) -> Iterator[str]:
    """The lines of the table, as they come."""
    for case in cases:
        for contestant in contestants:
            try:
                with serving(contestant.server) as server, stage(contestant, server) as begun:
                    yield row(contestant, case, case.run(begun))
            except (NotInstalled, NotUnderLoad) as reason:
                yield f"| {contestant.name} | {case.name} ({case.numbers}) | | | | | | | {reason} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--systems", default="", help="names, separated by commas; all without")
    parser.add_argument("--cases", default="", help="parts of names, separated by commas; all without")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {KEPT.name}")
    said = parser.parse_args()
    wanted = said.systems.lower().split(",")
    contestants = [each for each in SYSTEMS if not said.systems or each.name.lower() in wanted]
    cases = [each for each in CASES if any(part in each.name for part in said.cases.split(","))]
    if not contestants or not cases:
        parser.error("no such system or case")
    lines = [*HEAD]
    print(*HEAD, sep="\n", flush=True)
    for line in play(contestants, cases):
        print(line, flush=True)
        lines.append(line)
    if said.write:
        versions = ", ".join(each.version() for each in contestants)
        head = ["# Faults", "", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {versions}.", ""]
        KEPT.write_text("\n".join([*head, *lines, EXPLAINED]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
