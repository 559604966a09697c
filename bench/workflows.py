"""Real workflows, replayed: each task once, none before its parents had ended, and how near to the ideal.

    python -m bench.workflows FOLDER [--store postgres] [--seconds 30] [--workers 2] [--concurrency 32]

Every WfFormat file of the folder (1.5, such as those of WfInstances) goes through `perdure job run`, at the time scale
at which its ideal, the greater of the critical path and the work divided by the concurrency, takes `--seconds`. What
ran is read from the effect ledger, outside the store, and what was to run from the file itself: nothing of perdure is
asked. The target is at most 1.05 x the ideal and 1 ms a task. Where the bound, which no order of the tasks beats, is
above that, it is said. Ends with 1 if a task ran twice, early or not at all.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

MOST_RATIO = 1.05
MOST_SECONDS_A_TASK = 0.001
PATIENCE = 10
"""A run that takes so many times its ideal, and a minute, has hung."""


class Workflow(NamedTuple):
    """What a file asks for: for each task its parents, and the seconds it took."""

    path: Path
    parents: Mapping[str, Set[str]]
    seconds: Mapping[str, float]

    def ideal(self, concurrency: int) -> float:
        """The greater of the critical path and of the work divided by the concurrency, in seconds."""

        @cache
        def ends(task: str) -> float:
            return self.seconds[task] + max(map(ends, self.parents[task]), default=0.0)

        return max(max(map(ends, self.parents)), sum(self.seconds.values()) / concurrency)


class Replay(NamedTuple):
    """What became of one file."""

    tasks: int
    ideal: float
    makespan: float
    bound: float
    wrong: list[str]

    @property
    def most(self) -> float:
        """What it may take."""
        return MOST_RATIO * self.ideal + MOST_SECONDS_A_TASK * self.tasks


def read(path: Path) -> Workflow:
    """The tasks of a WfFormat file. An edge holds whichever of its tasks names it."""
    workflow = json.loads(path.read_text())["workflow"]
    tasks = workflow["specification"]["tasks"]
    parents = {task["id"]: {*task.get("parents", [])} for task in tasks}
    for task in tasks:
        for child in task.get("children", []):
            parents[child].add(task["id"])
    took = {run["id"]: float(run["runtimeInSeconds"]) for run in workflow["execution"]["tasks"]}
    return Workflow(path, parents, {name: took.get(name, 0.0) for name in parents})


def faults(workflow: Workflow, ledger: Path) -> list[str]:
    """What the effect ledger has that should not be."""
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    seen = Counter((line["event"], line["name"]) for line in lines)
    due = Counter((event, name) for name in workflow.parents for event in ("start", "end"))
    wrong = [f"{event} of {name}: {seen[event, name]} times" for event, name in (seen - due) + (due - seen)]
    at = {(line["event"], line["name"]): line["boot_us"] for line in lines}
    for name, parents in workflow.parents.items():
        early = [each for each in parents if at.get(("end", each), 0) > at.get(("start", name), 0)]
        wrong += [f"{name} began before {each} had ended" for each in early]
    return wrong


def replay(workflow: Workflow, said: argparse.Namespace, store: str | None) -> Replay:
    """Run one file. Raises `RuntimeError` with what the command said if it fails."""
    scale = said.seconds / workflow.ideal(said.concurrency)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "effects"
        command = [sys.executable, "-m", "perdure", "job", "run", str(workflow.path.absolute()), "--json"]
        command += ["--workers", str(said.workers), "--concurrency", str(said.concurrency)]
        command += ["--time-scale", repr(scale), "--ledger", str(ledger), *(["--store", store] if store else [])]
        patience = PATIENCE * said.seconds + 60
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=patience, check=False)
        if ran.returncode:
            raise RuntimeError(f"{workflow.path.name}: {ran.stderr.strip()}")
        run: dict[str, Any] = json.loads(ran.stdout)
        return Replay(len(workflow.parents), said.seconds, run["makespan"], run["bound"], faults(workflow, ledger))


@contextlib.contextmanager
def stores(kind: str) -> Iterator[Iterator[str | None]]:
    """A fresh store for each replay: none is named for a file, which `perdure job run` makes for itself."""
    if kind == "sqlite":
        yield iter(lambda: None, "")
        return
    from bench.servers import postgres

    with postgres() as server:
        yield (_migrated(server.fresh("workflow")) for _ in iter(int, 1))


def _migrated(url: str) -> str:
    subprocess.run([sys.executable, "-m", "perdure", "db", "migrate", "--store", url], check=True, capture_output=True)
    return url


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="bench.workflows", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=30, help="how long the ideal is to take (default 30)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=32)
    said = parser.parse_args()
    paths = sorted(said.folder.glob("*.json"))
    if not paths:
        parser.error(f"{said.folder} has no .json file")
    print(
        "| workflow | tasks | ideal s | makespan s | may take s | bound s | |",
        "|---|---|---|---|---|---|---|",
        sep="\n",
    )
    wrong: list[str] = []
    with stores(said.store) as fresh:
        for path in paths:
            run = replay(read(path), said, next(fresh))
            verdict = "met" if run.makespan <= run.most else "missed"
            verdict = "no order meets it" if run.bound > run.most else verdict
            numbers = f"{run.ideal:.2f} | {run.makespan:.2f} | {run.most:.2f} | {run.bound:.2f}"
            print(f"| {path.stem} | {run.tasks:,} | {numbers} | {verdict} |", flush=True)
            wrong += [f"{path.stem}: {each}" for each in run.wrong]
    print(*wrong or ["", "Each task ran once, none before its parents had ended, by the effect ledger."], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
