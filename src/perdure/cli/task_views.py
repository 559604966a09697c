"""Tasks, attempts and histories as people read them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perdure.cli.output import (
    counted,
    plain,
    shown_instant,
    shown_seconds,
    write_facts,
    write_line,
    write_note,
    write_table,
)
from perdure.domain.states import WAITING

if TYPE_CHECKING:
    from perdure.domain.why import Obstacle
    from perdure.store.views import AttemptView, EventView, Page, TaskView


def write_tasks(page: "Page") -> None:
    """A page of tasks, and how to see the next one."""
    write_table(
        ("ID", "STATE", "KIND", "QUEUE", "ATTEMPT", "CREATED", "FINISHED"),
        [
            (
                view.id,
                _state(view),
                view.kind,
                view.queue,
                _attempt(view),
                shown_instant(view.created_us),
                shown_instant(view.finished_us),
            )
            for view in page.rows
        ],
        "no tasks",
    )
    if page.cursor is not None:
        write_note(f"more with --cursor {page.cursor}")


def write_task(view: "TaskView", attempts: "Sequence[AttemptView]", worker_seen_us: int | None = None) -> None:
    """One task, all of it, with the traceback of its last error at the end. `worker_seen_us`: when its worker was."""
    write_facts([*_identity(view), *_lease(view, worker_seen_us), *_times(view), *_outcome(view)])
    if attempts:
        write_line("")
        _write_attempts(attempts)
    if view.last_error is not None and view.last_error.traceback:
        write_line("")
        write_line(view.last_error.traceback.rstrip("\n"))


def _write_attempts(attempts: "Sequence[AttemptView]") -> None:
    """The claims of a task in their order, with their generations where there are several: each counts anew."""
    again = any(each.generation > 1 for each in attempts)
    rows = [
        (
            each.attempt,
            each.state,
            each.reason,
            each.worker,
            shown_instant(each.leased_us),
            _ran(each.leased_us, each.ended_us),
            _error(each.error),
            each.fence,
        )
        for each in attempts
    ]
    write_table(
        ("GENERATION",) * again + ("ATTEMPT", "STATE", "REASON", "WORKER", "LEASED", "HELD", "ERROR", "FENCE"),
        [(each.generation,) * again + row for each, row in zip(attempts, rows, strict=True)],
        "",
        below=("WORKER", "LEASED", "ERROR"),
    )


Facts = list[tuple[str, object]]


def _identity(view: "TaskView") -> Facts:
    return [
        ("id", view.id),
        ("kind", view.kind),
        ("state", _state(view)),
        ("queue", f"{view.queue} (priority {view.priority})"),
        ("job", f"{view.job} ({view.name})" if view.job else None),
        ("waits for", counted(view.waits, "task") if view.waits else None),
        ("attempt", f"{_attempt(view)}, losses {view.losses}"),
        ("generation", view.generation if view.generation > 1 else None),
        ("worker", view.worker),
    ]


def _lease(view: "TaskView", worker_seen_us: int | None) -> Facts:
    """Until when its worker has it if nothing is heard, and when something was."""
    if view.lease_expires_us is None:
        return []
    seen = "" if worker_seen_us is None else f"; its worker was last seen {shown_instant(worker_seen_us)}"
    return [("leased", f"until {shown_instant(view.lease_expires_us)} unless renewed{seen}")]


def _times(view: "TaskView") -> Facts:
    facts: Facts = [
        ("created", f"{shown_instant(view.created_us)} by {view.principal}"),
        ("due", shown_instant(view.due_us)),
        ("started", shown_instant(view.started_us)),
        ("finished", shown_instant(view.finished_us)),
    ]
    if view.finished_us is None:
        facts += [("deadline", shown_instant(view.deadline_us)), ("must begin by", shown_instant(view.expires_us))]
    return facts


def _outcome(view: "TaskView") -> Facts:
    return [
        ("phase", view.phase),
        ("progress", _progress(view.progress)),
        ("labels", ", ".join(f"{name}={value}" for name, value in sorted(view.labels.items())) or None),
        ("metadata", _json(view.metadata)),
        ("cancel", _cancel(view)),
        ("summary", view.summary),
        ("last error", _error(view.last_error)),
        ("payload", _json(plain(view.payload))),
        ("result", _json(plain(view.result))),
    ]


def write_events(history: "Sequence[EventView]", attempts: "Sequence[AttemptView]") -> None:
    """A history, oldest first; where an attempt failed, with its error."""
    errors = {each.id: _error(each.error) for each in attempts}
    write_table(
        ("AT", "EVENT", "ACTOR", "DATA"),
        [(shown_instant(each.at_us), each.type, each.actor, _data(each, errors)) for each in history],
        "no history",
        below=("DATA",),
    )


def _data(event: "EventView", errors: "Mapping[str, str | None]") -> str | None:
    """What an event tells, as `name=value`; the ids of its attempt and worker are left to `--json`."""
    said = {name: value for name, value in event.data.items() if name not in ("attempt", "worker")}
    parts = [f"{name}={value if isinstance(value, str) else _json(value)}" for name, value in said.items()]
    for place, name in enumerate(said):
        if name.endswith("_us") and isinstance(said[name], int):
            parts[place] = f"{name.removesuffix('_us')}={shown_instant(said[name])}"
    error = errors.get(str(event.data.get("attempt"))) if event.type in ("failed", "lost", "cancelled") else None
    return " ".join([*parts, *([f"error={error}"] if error else [])]) or None


def write_obstacles(obstacles: "Sequence[Obstacle]") -> None:
    """What keeps a task from running, and what would free it."""
    if not obstacles:
        write_line("nothing keeps it: the next worker that asks for work and fits gets it")
        return
    write_table(
        ("WHY", "WHAT", "HELD BY", "UNTIL", "WHAT FREES IT"),
        [(each.sort, each.text, _held_by(each), shown_instant(each.until_us), each.frees) for each in obstacles],
        "",
        below=("WHAT", "HELD BY", "WHAT FREES IT"),
    )


def _held_by(obstacle: "Obstacle") -> str | None:
    """`worker ID`, `tasks ID, ID`, `queue NAME`."""
    if not obstacle.by:
        return None
    noun = obstacle.by_what or ""
    return f"{noun}{'s' * (bool(noun) and len(obstacle.by) > 1)} {', '.join(obstacle.by)}".lstrip()


def _state(view: "TaskView") -> str:
    shown = f"{view.state} ({view.reason})" if view.reason is not None else str(view.state)
    return f"{shown}, discarded" if view.discarded else shown


def _attempt(view: "TaskView") -> str:
    """The attempt that runs, comes next or ended it, of how many it may have."""
    if view.attempt == 0 or (view.attempt == 1 and view.started_us is None and view.state in WAITING):
        return f"not started, up to {view.max_attempts}"
    return f"{view.attempt} of {view.max_attempts}"


def _ran(began_us: int | None, ended_us: int | None) -> str:
    if began_us is None or ended_us is None:
        return "-"
    return shown_seconds((ended_us - began_us) / 1_000_000)


def _progress(progress: dict[str, int] | None) -> str | None:
    if progress is None:
        return None
    total = progress.get("total")
    return f"{progress['done']:,}" if total is None else f"{progress['done']:,} of {total:,}"


def _cancel(view: "TaskView") -> str | None:
    if view.cancel is None:
        return None
    text = f": {view.cancel.text}" if view.cancel.text else ""
    return f"asked {shown_instant(view.cancel.at_us)} by {view.cancel.actor} ({view.cancel.reason}){text}"


def _error(error: Any) -> str | None:
    return f"{error.type}: {error.message}" if error is not None else None


def _json(value: Any) -> str | None:
    import msgspec

    return None if value is None else msgspec.json.encode(value).decode()
