"""`python -m bench`: the rounds, the medians, the table."""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from bench import flow, gateway, kill, postgres_run, raw_sqlite, scale, servers

PARTS = ("throughput", "kill", "scale", "gateway", "flow")
RESULTS = Path(__file__).parent / "results"
TARGETS = {
    # figure: (numerator, denominator, must, goal)
    "drain / huey": ("drain", "huey drain", 3.0, 8.0),
    "drain / raw by 100": ("drain", "raw drain by 100", None, None),
    "submit one by one / raw": ("submit one by one", "raw insert by 1", 0.5, 0.8),
    "submit one by one / huey": ("submit one by one", "huey submit one by one", None, None),
    "submit bulk / raw by 100": ("submit bulk by 1000", "raw insert by 100", 0.3, 0.6),
}


def _separate(module: str, *args: object) -> dict[str, Any]:
    """Run a part in a process of its own, so that memory and the interpreter lock are its own."""
    output = subprocess.run(
        [sys.executable, "-m", module, *map(str, args)], check=True, capture_output=True, text=True
    ).stdout
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


def _round(size: int, tasks: int, single: int, peer: int) -> dict[str, float]:
    payload = b"x" * size
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        figures: dict[str, float] = {
            "raw insert by 1": raw_sqlite.insert(folder, single, 1, payload),
            "raw insert by 100": raw_sqlite.insert(folder, tasks, 100, payload),
            "raw drain by 100": raw_sqlite.drain(folder, tasks, 100, payload),
        }
        figures |= _separate("bench.perdure_app", folder, size, tasks, single)
        figures |= {f"huey {key}": value for key, value in _separate("bench.huey_app", folder, size, peer).items()}
    return figures


def _table(rounds: list[dict[str, float]]) -> list[str]:
    medians = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
    lines = ["| figure | median | lowest | highest |", "|---|---|---|---|"]
    for key, median in medians.items():
        values = [each[key] for each in rounds]
        lines.append(f"| {key} | {median:,.1f} | {min(values):,.1f} | {max(values):,.1f} |")
    lines += ["", "| ratio | median of rounds | must | goal |", "|---|---|---|---|"]
    for name, (above, below, must, goal) in TARGETS.items():
        ratio = statistics.median(each[above] / each[below] for each in rounds)
        wanted = [f"{value:g}" if value is not None else "" for value in (must, goal)]
        lines.append(f"| {name} | {ratio:.2f} | {wanted[0]} | {wanted[1]} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite", help="on what (default: sqlite)")
    parser.add_argument("--quick", action="store_true", help="one short round of each part")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", help=f"one part only: of {', '.join(PARTS)}; of postgres {', '.join(postgres_run.PARTS)}, flow"
    )
    postgres_run.arguments(parser)
    options = parser.parse_args()
    parts = (*postgres_run.PARTS, "flow") if options.store == "postgres" else PARTS
    if options.only not in (None, *parts):
        parser.error(f"--only: choose from {', '.join(parts)}")
    if (options.store, options.only) == ("postgres", "flow"):
        with servers.postgres() as server:
            print("\n".join(flow.report_postgres(server, quick=options.quick)))
    elif options.store == "postgres":
        postgres_run.run(options, [])
    else:
        _sqlite(options)


def _sqlite(options: argparse.Namespace) -> None:
    rounds, tasks, single, peer = (1, 5_000, 500, 500) if options.quick else (options.rounds, 20_000, 2_000, 2_000)
    report = [
        "# perdure on SQLite",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}, "
        f"{os.cpu_count()} cores. Rates are tasks a second.",
    ]
    if options.only in (None, "throughput"):
        for size in (50, 1_000):
            print(f"payloads of {size} bytes ...", flush=True)
            done = [_round(size, tasks, single, peer) for _ in range(rounds)]
            report += ["", f"## Payloads of {size} bytes, {rounds} rounds", "", *_table(done)]
    if options.only in (None, "kill"):
        print("a kill in the middle ...", flush=True)
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
            counted = asyncio.run(kill.recount(Path(folder), 2_000 if options.quick else 20_000))
        report += ["", "## A worker killed in the middle of a drain", ""]
        report += [f"- {key}: {value}" for key, value in counted.items()]
    if options.only in (None, "scale"):
        print("width, depth and a million ended tasks ...", flush=True)
        report += ["", "## Width, depth and history", "", *scale.report(quick=options.quick)]
    if options.only in (None, "gateway"):
        print("through a gateway ...", flush=True)
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
            lines = gateway.report(rounds, tasks, single * 4, Path(name), quick=options.quick)
        report += ["", f"## Through one gateway process, payloads of 50 bytes, {rounds} rounds", "", *lines]
    if options.only in (None, "flow"):
        print("limits and fair share ...", flush=True)
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
            report += ["", "## Limits and fair share", "", *flow.report_sqlite(Path(name), quick=options.quick)]
    RESULTS.mkdir(exist_ok=True)
    text = "\n".join(report) + "\n"
    (RESULTS / (f"{options.only}.md" if options.only in ("gateway", "flow") else "sqlite.md")).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
