"""`make mutants`: breaks each guard of a store in turn and asks whether a test notices.

Survivors are listed with their reason in surviving.toml, or they need a test that kills them.
"""

import argparse
import sys
import time
import tomllib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from mutants.postgres_side import PostgresSide
from mutants.predicates import Mutant
from mutants.running import A_LIFE, LIVES, Choice, Verdict, all_mutants, judge
from mutants.side import Side
from mutants.sqlite_side import SqliteSide
from mutants.verdicts import Verdicts

SURVIVING = Path(__file__).with_name("surviving.toml")
SIDES: dict[str, Callable[[], Side]] = {"sqlite": SqliteSide, "postgres": PostgresSide}


def main() -> int:
    """Judge the mutants; 1 when one survives without a reason."""
    parser = argparse.ArgumentParser(prog="python -m mutants")
    parser.add_argument("only", nargs="*", help="statements whose names begin so; all without")
    parser.add_argument("--store", choices=sorted(SIDES), default="sqlite")
    parser.add_argument("--tests", action="append", default=[], help="a folder or file of tests, instead of all")
    parser.add_argument("--lives", type=int, default=LIVES, help="simulated lives for what no test catches")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--skip-justified", action="store_true", help="leave out those with a reason to survive")
    parser.add_argument("--go-on", action="store_true", help="keep the verdicts of the last time that still hold")
    given = parser.parse_args()
    reasons: dict[str, str] = tomllib.loads(SURVIVING.read_text()).get(given.store, {})
    side = SIDES[given.store]()
    with side.at_hand():
        found = all_mutants(side, given.only)
        if given.skip_justified:
            found = [each for each in found if each.name not in reasons]
        if given.list:
            print("\n".join(each.name for each in found))
            return 0
        choice = Choice(given.lives, given.processes, given.tests)
        return _judged(side, found, choice, reasons, given.go_on)


def _judged(side: Side, found: Sequence[Mutant], choice: Choice, reasons: Collection[str], go_on: bool) -> int:
    begun, all_kept = time.monotonic(), Verdicts(side.world)
    verdicts = all_kept.kept(found) if go_on else []
    known = {each.mutant.name for each in verdicts}

    def tell(verdict: Verdict) -> None:
        verdicts.append(verdict)
        all_kept.keep(verdict)
        name, by = verdict.mutant.name, verdict.caught_by
        told = f"caught    {name}   by {by}" if by else f"{'justified' if name in reasons else 'SURVIVED '} {name}"
        if verdict.error:
            told += f"   ({verdict.error})"
        if not verdict.made_a_difference:
            told += "   (it never made a difference)"
        print(f"{len(verdicts):4} {verdict.seconds:5.1f} s  {told}", flush=True)

    if waiting := [each for each in found if each.name not in known]:
        judge(side, waiting, choice, tell)
    survivors = {each.mutant.name for each in verdicts if not each.caught_by}
    unexplained = sorted(survivors - set(reasons))
    print(f"\n{len(found)} mutants in {time.monotonic() - begun:.0f} s: {len(found) - len(survivors)} caught, ", end="")
    print(f"{len(survivors) - len(unexplained)} justified, {len(unexplained)} survive without a reason")
    for title, names in (
        ("survive", unexplained),
        ("are caught, their reasons can go", sorted(set(reasons) & {each.name for each in found} - survivors)),
        ("are caught by simulated lives alone", [each.mutant.name for each in verdicts if each.caught_by == A_LIFE]),
        ("are caught by errors alone", [each.mutant.name for each in verdicts if each.error]),
    ):
        if names:
            print(f"{len(names)} {title}:", *names, sep="\n  ")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
