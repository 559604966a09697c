"""A run on PostgreSQL: the parts that are asked for, in rounds, and the report."""

import argparse
import contextlib
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import parts, report, servers, strain
from bench.contestants import OURS, PGQUEUER, Contestant
from bench.environments import NotInstalled
from bench.figures import Figures
from bench.parts import Sizes
from bench.servers import Postgres

PARTS = (
    *("throughput", "latency", "idle", "backlog", "snapshot", "forbidden"),
    *("mixture", "kill", "shapes", "crowd", "million"),
)
COMPARED = (OURS, PGQUEUER)
PAYLOADS = (50, 1_000)
SAMPLES, QUICK_SAMPLES = 150, 40
QUICK_SCALE = 0.1
IDLE_SECONDS = 60.0
MINUTES = 24.0
FOLDER = Path(__file__).parent
KILLED = "A worker killed in the middle of a drain"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be said about a run."""
    parser.add_argument("--scale", type=float, default=1.0, help="so much of every size (default 1)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=MINUTES,
        help=f"begin nothing more after so long (default {MINUTES:g}); what is left out is said",
    )
    parser.add_argument("--write", action="store_true", help="write RESULTS.md even though not everything is measured")


class Run:
    """One run, on servers of its own."""

    def __init__(self, options: argparse.Namespace, peers: Sequence[Contestant]) -> None:
        self.options = options
        quick = options.quick
        self._enough = time.monotonic() + 60 * options.minutes
        self.rounds = 1 if quick else options.rounds
        scale = QUICK_SCALE if quick else options.scale
        self.sizes = Sizes(scale, QUICK_SAMPLES if quick else SAMPLES, max(10.0, min(1.0, scale) * IDLE_SECONDS))
        self.figures = Figures()
        self.told: dict[str, list[str]] = {}
        self._left_out: Counter[str] = Counter()
        self._peers = peers
        self._servers: dict[str, Any] = {}

    def measure(self) -> str:
        """The report."""
        with contextlib.ExitStack() as stack:
            contestants = list(self._installed(stack))
            how = "a quick run" if self.options.quick else f"{self.rounds} rounds, sizes x {self.sizes.scale:g}"
            facts = [f"{each.version()}: {each.settings()}" for each in self._servers.values()]
            systems = [f"{each.version()}: {each.setup}" for each in contestants]
            lines = report.heading(how, systems, facts, servers.sync_microseconds())
            self._measure_all(contestants)
        if self._left_out:
            times = ", ".join(f"{what} ({count} x)" for what, count in self._left_out.items())
            self.figures.failures.append(f"no time was left for: {times}")
        lines += ["", *report.targets(self.figures), *report.tables(self.figures), *report.stories(self.told)]
        if self.figures.failures:
            lines += ["", "## What could not be measured", "", *(f"- {each}" for each in self.figures.failures)]
        return "\n".join(lines) + "\n"

    def _installed(self, stack: contextlib.ExitStack) -> Iterator[Contestant]:
        for each in (OURS, *self._peers):
            try:
                each.version()
                if each.server not in self._servers:
                    make = {"postgres": servers.postgres, "redis": servers.redis}[each.server]
                    self._servers[each.server] = stack.enter_context(make())
                yield each
            except NotInstalled as absent:
                self.figures.failures.append(f"{each.name}: {absent}")

    @property
    def _postgres(self) -> Postgres:
        server: Postgres = self._servers["postgres"]
        return server

    def _try(self, what: str, measurement: Callable[..., Any], *words: Any) -> Any:
        """A measurement, or a line that says why there is none: others go on."""
        begin = time.monotonic()
        if begin > self._enough:
            self._left_out[what.split(",")[0]] += 1
            return None
        print(f"  {what}", end="", flush=True)
        try:
            return measurement(*words)
        except Exception as failure:
            traceback.print_exc()
            self.figures.failures.append(f"{what}: {' '.join(str(failure).split())[-300:]}")
            return None
        finally:
            print(f": {time.monotonic() - begin:.0f} s", flush=True)

    def _measure_all(self, contestants: Sequence[Contestant]) -> None:
        """Those that the targets compare come first and one after the other, so that they find the machine alike."""
        compared = [each for each in contestants if each in COMPARED]
        others = [each for each in contestants if each not in COMPARED]
        for part in PARTS:
            if self.options.only in (None, part):
                print(f"{part} ...", flush=True)
                getattr(self, f"_{part}")(compared)
        for part in ("throughput", "latency", "idle"):
            if others and self.options.only in (None, part):
                print(f"{part} of other peers ...", flush=True)
                getattr(self, f"_{part}")(others)

    def _throughput(self, contestants: Sequence[Contestant]) -> None:
        compared = OURS in contestants
        for number in range(self.rounds):
            for size in PAYLOADS if compared and number == 0 else PAYLOADS[:1]:
                label = f"round {number + 1}, {size} bytes"
                if compared:
                    self._try(f"raw, {label}", parts.raw_throughput, self._postgres, self.figures, self.sizes, size)
                for each in contestants:
                    self._throughput_of(each, size, label)

    def _throughput_of(self, each: Contestant, size: int, label: str) -> None:
        common = (each, self._servers[each.server], self.figures, self.sizes, size)
        self._try(f"{each.name} submits, {label}", parts.submits, *common)
        for workers in (1, 2):
            self._try(f"{each.name} drains by {workers}, {label}", parts.drain, *common, workers)

    def _latency(self, contestants: Sequence[Contestant]) -> None:
        if OURS in contestants:
            self._try("latency of raw", parts.raw_latency, self._postgres, self.figures, self.sizes)
        for each in contestants:
            common = (each, self._servers[each.server], self.figures, self.sizes)
            self._try(f"latency of {each.name}", parts.latency, *common)

    def _idle(self, contestants: Sequence[Contestant]) -> None:
        for each in contestants:
            common = (each, self._servers[each.server], self.figures, self.sizes)
            self._try(f"idleness of {each.name}", parts.idle, *common)

    def _backlog(self, contestants: Sequence[Contestant]) -> None:
        for each in contestants:
            self._try(f"backlog of {each.name}", strain.backlog, each, self._postgres, self.figures, self.sizes)

    def _snapshot(self, contestants: Sequence[Contestant]) -> None:
        for each in contestants:
            common = (each, self._postgres, self.figures, self.sizes)
            self._try(f"{each.name} under an old snapshot", strain.snapshot, *common)

    def _forbidden(self, contestants: Sequence[Contestant]) -> None:
        self._try("foreign kinds", strain.forbidden, self._postgres, self.figures, self.sizes)

    def _mixture(self, contestants: Sequence[Contestant]) -> None:
        told = self._try("some kinds of some organizations", strain.mixture, self._postgres, self.figures, self.sizes)
        self.told["Some kinds of some organizations"] = told or ["not measured"]

    def _shapes(self, contestants: Sequence[Contestant]) -> None:
        self._try("jobs that are wide", strain.shapes, self._postgres, self.figures, self.sizes)

    def _crowd(self, contestants: Sequence[Contestant]) -> None:
        told = self._try("many workers", strain.crowd, self._postgres, self.figures, self.sizes)
        self.told["Many workers on one queue"] = told or ["not measured"]

    def _million(self, contestants: Sequence[Contestant]) -> None:
        self._try("a million queued", strain.million, self._postgres, self.figures, self.sizes)

    def _kill(self, contestants: Sequence[Contestant]) -> None:
        outcome = self._try("a kill in the middle", strain.kill, self._postgres, self.sizes)
        if outcome is None:
            self.told[KILLED] = ["not measured"]
            return
        self.told[KILLED], good = outcome
        if not good:
            self.figures.failures.append("the recount after the kill: TASKS ARE MISSING")


def run(options: argparse.Namespace, peers: Sequence[Contestant]) -> None:
    """Measure, print, and write: a whole run into RESULTS.md, any other into results/, which is not kept."""
    text = Run(options, peers).measure()
    whole = options.write or (not (options.quick or options.only) and bool(peers) and options.scale >= 1)
    path = FOLDER / "RESULTS.md" if whole else FOLDER / "results" / "postgres.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    print(text)
    print(f"written to {path}")
