"""`python -m bench.peers`: perdure on PostgreSQL, the limits of its server, and its peers, in one run."""

import argparse

from bench import postgres_run
from bench.contestants import PEERS


def main() -> None:
    """The run with every peer that is installed, or with those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round of each part")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=postgres_run.PARTS, help="one part only")
    parser.add_argument("--peers", help="only these peers, by comma: " + ", ".join(each.name for each in PEERS))
    postgres_run.arguments(parser)
    options = parser.parse_args()
    wanted = {name.strip().lower() for name in (options.peers or "").split(",") if name.strip()}
    known = {each.name.lower() for each in PEERS}
    if wanted - known:
        parser.error(f"no such peer: {', '.join(sorted(wanted - known))}; there are {', '.join(sorted(known))}")
    postgres_run.run(options, [each for each in PEERS if not wanted or each.name.lower() in wanted])


if __name__ == "__main__":
    main()
