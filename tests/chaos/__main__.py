"""The scoreboard: `python -m chaos [--quick] [--seed N] [--rounds N] [--install] [NAME OR NUMBER ...]`.

Each case starts real processes and does real harm to them; the table tells case by case what held. The exit code is 1
when a case failed.
"""

import argparse
import secrets
import shutil
import signal
import subprocess
import sys

from chaos.grounds import STORES
from chaos.scoreboard import CASES, HEAD, play


def main() -> int:
    """Play the cases and print the table."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="numbers, or parts of names; all when none is said")
    parser.add_argument("--quick", action="store_true", help="the short form of each case")
    parser.add_argument("--seed", type=int, help="repeat a run")
    parser.add_argument("--store", choices=STORES, default="sqlite", help="what the cases stand on")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case is played, each with its own seed")
    parser.add_argument(
        "--install", action="store_true", help="get what is missing (strace, faketime) by apt-get first"
    )
    said = parser.parse_args()
    if said.install:
        _install_what_is_missing()
    chosen = [
        each
        for each in CASES
        if said.store in each.stores and (not said.cases or _is_named(each.number, each.name, said.cases))
    ]
    if not chosen:
        parser.error("no such case")
    # Told to end, it unmounts its disks and ends its processes first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(HEAD, flush=True)
    failed = False
    for case in chosen:
        for _ in range(said.rounds):
            outcome = play(
                case, said.seed if said.seed is not None else secrets.randbelow(10**9), said.quick, said.store
            )
            print(outcome.row(), flush=True)
            for fact in outcome.wrong:
                print("      ! " + fact.replace("\n", "\n        "), flush=True)
            failed = failed or bool(outcome.wrong)
    return 1 if failed else 0


def _install_what_is_missing() -> None:
    missing = [program for program in ("strace", "faketime") if shutil.which(program) is None]
    if missing:
        subprocess.run(["apt-get", "install", "-y", *missing], check=False, stdout=sys.stderr)


def _is_named(number: str, name: str, said: list[str]) -> bool:
    return any(each == number or (not each.isdigit() and each.lower() in name.lower()) for each in said)


if __name__ == "__main__":
    sys.exit(main())
