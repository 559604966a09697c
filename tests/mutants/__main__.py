"""`make mutants`: breaks each guard of the store in turn and asks whether a test notices.

Survivors are listed with their reason in surviving.toml, or they need a test that kills them.
"""

import argparse
import sys
import time
import tomllib
from pathlib import Path

from mutants.running import A_LIFE, LIVES, Verdict, all_mutants, judge

SURVIVING = Path(__file__).with_name("surviving.toml")


def main() -> int:
    """Judge the mutants; 1 when one survives without a reason."""
    parser = argparse.ArgumentParser(prog="python -m mutants")
    parser.add_argument("only", nargs="*", help="statements whose names begin so; all without")
    parser.add_argument("--lives", type=int, default=LIVES, help="simulated lives for what no test catches")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--skip-justified", action="store_true", help="leave out those with a reason to survive")
    given = parser.parse_args()
    found = all_mutants(given.only)
    reasons = tomllib.loads(SURVIVING.read_text()) if SURVIVING.exists() else {}
    if given.skip_justified:
        found = [each for each in found if each.name not in reasons]
    if given.list:
        print("\n".join(each.name for each in found))
        return 0
    begun, verdicts = time.monotonic(), list[Verdict]()

    def tell(verdict: Verdict) -> None:
        verdicts.append(verdict)
        name, by = verdict.mutant.name, verdict.caught_by
        told = f"caught    {name}   by {by}" if by else f"{'justified' if name in reasons else 'SURVIVED '} {name}"
        if not verdict.made_a_difference:
            told += "   (it never made a difference)"
        print(f"{len(verdicts):4} {verdict.seconds:5.1f} s  {told}", flush=True)

    judge(found, given.lives, tell)
    survivors = [each.mutant.name for each in verdicts if not each.caught_by]
    by_a_life = [each.mutant.name for each in verdicts if each.caught_by == A_LIFE]
    unexplained = sorted(set(survivors) - reasons.keys())
    stale = sorted(reasons.keys() & {each.name for each in found} - set(survivors))
    print(f"\n{len(found)} mutants in {time.monotonic() - begun:.0f} s: {len(found) - len(survivors)} caught, ", end="")
    print(f"{len(survivors) - len(unexplained)} justified, {len(unexplained)} survive without a reason")
    for title, names in (
        ("survive", unexplained),
        ("are caught, their reasons can go", stale),
        ("are caught by simulated lives alone", by_a_life),
    ):
        if names:
            print(f"{title}:", *names, sep="\n  ")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
