"""The report of a run: what it was taken on, every figure with its lowest and highest, the targets."""

import os
import statistics
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import psutil
import psycopg

from bench import parts, strain
from bench.contestants import OURS
from bench.figures import Figures
from bench.targets import NOT_IN_THIS_RUN, TARGETS

TABLES = (
    (
        "Throughput, tasks a second",
        (parts.ONE, parts.TOGETHER, parts.BULK, parts.DRAIN, parts.DRAIN_TWO),
    ),
    ("Limits of the server, rows a second", (parts.INSERT_ONE, parts.INSERT_MANY, parts.RAW_DRAIN)),
    ("Latency", (parts.START_MEDIAN, parts.START_TAIL, parts.RESULT_MEDIAN, parts.RESULT_TAIL)),
    (
        "A worker with nothing to do, and after a drain",
        (
            parts.MEMORY,
            parts.MEMORY_BUSY,
            parts.CONNECTIONS,
            parts.CONNECTIONS_BUSY,
            parts.IDLE_CPU,
            parts.IDLE_STATEMENTS,
            parts.IDLE_CONTROL,
        ),
    ),
    (
        "What work costs the server",
        (parts.STATEMENTS, parts.CONTROL, parts.WAL, parts.SYNCS, parts.SUBMIT_WAL),
    ),
    (
        "Under strain, tasks a second or as it is said",
        (
            strain.FEW,
            strain.MANY,
            strain.MILLION,
            strain.FRESH,
            strain.CHURNED,
            strain.WITHOUT,
            strain.FORBIDDEN,
            strain.MIXTURE,
            strain.LATE,
            strain.SINGLE,
            strain.FAN_OUT,
            strain.FAN_IN,
            strain.UNFAIR,
            strain.MEMORY_FRESH,
            strain.MEMORY_CHURNED,
        ),
    ),
)


def machine() -> str:
    """What this machine is, and how busy."""
    memory = psutil.virtual_memory().total / 2**30
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{os.cpu_count()} cores, {memory:.0f} GB of memory, load {load}"


def heading(how: str, systems: Sequence[str], servers: Sequence[str], sync: float) -> list[str]:
    """Whose figures these are, and what they were taken on."""
    return [
        "# perdure on PostgreSQL",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {how}. {machine()} when it began. Python {sys.version.split()[0]}, "
        f"psycopg {psycopg.__version__}. A write of 8 KB and its `fdatasync` took {sync:.0f} microseconds.",
        "",
        *(f"- {each}" for each in servers),
        *(f"- {each}" for each in systems),
        "",
        "All figures are of this one run. Rates are from the beginning of the first task until the last is settled and "
        "committed; every submit is committed durably before it returns. What one machine does says little: the ratios "
        "count.",
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")


def targets(figures: Figures) -> list[str]:
    """Every target beside what was reached."""
    lines = ["## What it is to reach", "", "| figure | reached | must | goal | verdict |", "|---|---|---|---|---|"]
    for target in TARGETS:
        value = target.of(figures)
        sign = "<= " if target.lower else ""
        must, goal = (f"{sign}{_number(each)}" if each is not None else "" for each in (target.must, target.goal))
        reached = _number(value) if value is not None else ""
        lines.append(f"| {target.name} | {reached} | {must} | {goal} | {target.verdict(value)} |")
    return [*lines, "", f"Not measured by this run: {NOT_IN_THIS_RUN}."]


def tables(figures: Figures) -> list[str]:
    """Every figure: median of the rounds (lowest - highest)."""
    lines: list[str] = []
    for title, names in TABLES:
        rows = [(name, system) for name in names for system in figures.systems(name)]
        if not rows:
            continue
        lines += [
            "",
            f"## {title}",
            "",
            "| figure | system | median | lowest | highest | values |",
            "|---|---|---|---|---|---|",
        ]
        for name, system in rows:
            values = figures.values(system, name)
            three = (statistics.median(values), min(values), max(values))
            lines.append(f"| {name} | {system} | {' | '.join(map(_number, three))} | {len(values)} |")
    for title, slowest in figures.statements.items():
        if title.split(",")[0].endswith(OURS.name):
            lines += ["", f"## {title}: the statements that took longest", ""]
            lines += ["| statement | calls | microseconds for each task, or a minute |", "|---|---|---|", *slowest]
    return lines


def stories(told: dict[str, list[str]]) -> list[str]:
    """What is counted rather than timed."""
    lines: list[str] = []
    for title, items in told.items():
        lines += ["", f"## {title}", "", *(f"- {item}" for item in items)]
    return lines
