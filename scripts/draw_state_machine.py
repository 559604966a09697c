"""Writes docs/state_machine.md from the table in `perdure.domain.transitions`. Run it with `make docs`."""

from pathlib import Path

from perdure.domain.states import ENDED, RESERVED_REASONS, AttemptState, JobState, Reason, TaskState
from perdure.domain.transitions import TABLE, Transition

PAGE = Path(__file__).resolve().parents[1] / "docs" / "state_machine.md"

HEAD = """# The life of a task

This page is drawn from the table in `src/perdure/domain/transitions.py` by `make docs`; a test compares the two.
A move that is not here does not exist: it raises `IllegalTransition` and changes nothing.
"""


def draw() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_diagram(), "", "## Every move", "", *_table(), "", *_words()])


def _diagram() -> list[str]:
    """Arrows of one pair of states share their label."""
    labels: dict[tuple[str, str], list[str]] = {}
    for row in TABLE:
        for source in row.sources:
            for target in row.targets:
                labels.setdefault((source or "[*]", target), []).append(row.event)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in labels.items()]
    lines += [f"    {state} --> [*]" for state in TaskState if state in ENDED]
    return [*lines, "```"]


def _table() -> list[str]:
    return ["| from | event | to | its attempt becomes | when |", "|---|---|---|---|---|", *map(_row, TABLE)]


def _row(row: Transition) -> str:
    sources = ", ".join(source or "(none)" for source in row.sources)
    attempt = ", ".join(row.attempt) or "-"
    return f"| {sources} | {row.event} | {', '.join(row.targets)} | {attempt} | {row.when} |"


def _words() -> list[str]:
    open_states = ", ".join(f"`{state}`" for state in TaskState if state not in ENDED)
    ends = ", ".join(f"`{state}`" for state in TaskState if state in ENDED)
    reasons = ", ".join(f"`{reason}`" for reason in Reason if reason not in RESERVED_REASONS)
    reserved = ", ".join(f"`{reason}`" for reason in Reason if reason in RESERVED_REASONS)
    return [
        "## Every state and reason",
        "",
        f"- An unfinished task is {open_states}.",
        f"- An ended task is {ends}.",
        f"- An attempt is {', '.join(f'`{state}`' for state in AttemptState)}.",
        f"- A job is {', '.join(f'`{state}`' for state in JobState)}.",
        f"- Every end has one reason: {reasons}.",
        f"- Reserved, and the reason of no end yet: {reserved}, for when keys and roles come.",
        "",
    ]


if __name__ == "__main__":
    PAGE.write_text(draw(), encoding="utf-8")
