"""`perdure task ...`: look at tasks, cancel them, wait for them."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.labels import label_pairs
from perdure.cli.matching import DryRunOption
from perdure.cli.options import (
    CursorOption,
    JsonOption,
    KindOption,
    LimitOption,
    OldestOption,
    QueueOption,
    StoreOption,
    TaskId,
    TaskIds,
    TimeoutOption,
    YesOption,
)
from perdure.errors import Malformed

if TYPE_CHECKING:
    from enum import StrEnum

    from perdure.cli.session import Session
    from perdure.domain.why import Obstacle
    from perdure.store.ledger import Cancelled
    from perdure.store.views import AttemptView, EventView, Page, TaskFilter, TaskView

app = typer.Typer(
    help="Tasks: list, show, events, why, logs, cancel, wait.", no_args_is_help=True, rich_markup_mode=None
)

BODIES = ("payload", "result")


@app.command("list")
def list_tasks(
    state: Annotated[list[str] | None, typer.Option(help="Only this state; may be repeated.")] = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    job: Annotated[str | None, typer.Option(help="Only the tasks of this job.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only with this label, NAME=VALUE.")] = None,
    reason: Annotated[list[str] | None, typer.Option(help="Only ended for this reason.")] = None,
    oldest: OldestOption = False,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List tasks, newest first."""
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.cli.task_views import write_tasks
    from perdure.domain import ids
    from perdure.domain.states import Reason, TaskState
    from perdure.store.views import TaskFilter

    where = TaskFilter(
        states=tuple(TaskState(chosen(each, TaskState, "state")) for each in state or ()),
        kinds=tuple(kind or ()),
        queues=tuple(queue or ()),
        job=ids.parse(job, "job", "job") if job is not None else None,
        labels=label_pairs(label),
        reasons=tuple(Reason(chosen(each, Reason, "reason")) for each in reason or ()),
    )
    page = on_store(store, lambda session: fill_page(session, where, limit, cursor, oldest))
    if json:
        write_json(listed(page))
    else:
        write_tasks(page)


@app.command("show")
def show(task_id: TaskId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show one task with its payload, result and attempts."""
    from perdure.cli.output import plain, write_json
    from perdure.cli.session import on_store
    from perdure.cli.task_views import write_task
    from perdure.domain import ids

    parsed = ids.parse(task_id)

    async def read(session: "Session") -> "tuple[TaskView, list[AttemptView], int | None]":
        view = await found(session, parsed)
        attempts = await session.views.attempts(session.organization, view.id)
        workers = await session.views.workers(session.organization, None) if view.lease_expires_us is not None else ()
        return view, attempts, next((each.seen_us for each in workers if each.id == view.worker), None)

    view, attempts, seen_us = on_store(store, read)
    if json:
        write_json(plain(view) | {"attempts": plain(attempts)})
    else:
        write_task(view, attempts, seen_us)


@app.command("events")
def events(task_id: TaskId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show the history of one task."""
    from perdure.cli.output import plain_event, write_json
    from perdure.cli.session import on_store
    from perdure.cli.task_views import write_events
    from perdure.domain import ids

    parsed = ids.parse(task_id)

    async def read(session: "Session") -> "tuple[list[EventView], list[AttemptView]]":
        history = await session.views.events(session.organization, parsed)
        return history, [] if json else await session.views.attempts(session.organization, parsed)

    history, attempts = on_store(store, read)
    if json:
        write_json({"events": [plain_event(each) for each in history]})
    else:
        write_events(history, attempts)


@app.command("why")
def why(task_id: TaskId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Tell what keeps one task from running, and what would free it."""
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.cli.task_views import write_obstacles
    from perdure.domain import ids

    parsed = ids.parse(task_id)

    async def read(session: "Session") -> "list[Obstacle]":
        return await session.views.why(session.organization, parsed)

    obstacles = on_store(store, read)
    if json:
        write_json({"obstacles": obstacles})
    else:
        write_obstacles(obstacles)


@app.command("logs")
def logs(
    task_id: TaskId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until the task ends.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what the handlers of one task logged."""
    from perdure.cli.task_logs import write_logs
    from perdure.domain import ids

    write_logs(store, ids.parse(task_id), follow=follow, as_json=json)


@app.command("cancel")
def cancel(
    task_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of tasks.")] = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    job: Annotated[str | None, typer.Option(help="Only the tasks of this job.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only with this label, NAME=VALUE.")] = None,
    submitter: Annotated[list[str] | None, typer.Option(help="Only submitted by this one; may be repeated.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    text: Annotated[str | None, typer.Option("--reason", help="Told to everybody who sees the task.")] = None,
    note: Annotated[str | None, typer.Option(help="For you and administrators only.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Cancel tasks, by id or by what they have in common. What runs is asked to stop; what has ended stays as it is
    (exit code 2).
    """
    from perdure.cli.task_cancel import cancel_matching
    from perdure.domain import ids
    from perdure.store.views import TaskFilter

    where = TaskFilter(
        kinds=tuple(kind or ()),
        queues=tuple(queue or ()),
        job=ids.parse(job, "job", "job") if job is not None else None,
        labels=label_pairs(label),
        submitters=tuple(submitter or ()),
    )
    if bool(task_ids) == (where != TaskFilter()):
        raise Malformed("say which: ids, or --kind, --queue, --job, --label or --submitter", field="ids")
    if not task_ids:
        cancel_matching(where, dry_run, yes, text, store, json)
        return
    if dry_run:
        raise Malformed("--dry-run counts what a filter lets through: name no ids", field="dry_run")
    _cancel_named(ids.parse_all(task_ids), text, note, store, json)


def _cancel_named(chosen_ids: list[str], text: str | None, note: str | None, store: str | None, as_json: bool) -> None:
    from perdure.cli.beside import beside_the_work
    from perdure.cli.output import plain, write_json
    from perdure.cli.session import on_store

    async def request(session: "Session") -> "tuple[list[Cancelled], set[str]]":
        answers = await session.operations.cancel(chosen_ids, session.principal, text=text, note=note)
        unknown = [each for each, answer in zip(chosen_ids, answers, strict=True) if answer.answer == "not_found"]
        jobs: set[str] = set()
        with beside_the_work("whether the others are jobs was not looked up"):
            jobs |= {each for each in unknown if await session.views.job(session.organization, each) is not None}
        return answers, jobs

    answers, jobs = on_store(store, request)
    if as_json:
        write_json({"tasks": [{"id": each, **plain(answer)} for each, answer in zip(chosen_ids, answers, strict=True)]})
    refused = False
    for each, answer in zip(chosen_ids, answers, strict=True):
        refused |= answer.answer in ("ended", "not_found")
        if not as_json:
            words = f"is a job, not a task: `perdure job cancel {each}`" if each in jobs else _cancel_words(answer)
            sys.stdout.write(f"{each} {words}\n")
    if refused:
        raise typer.Exit(2)


@app.command("wait")
def wait(
    task_ids: TaskIds,
    timeout: TimeoutOption = None,
    any_of: Annotated[bool, typer.Option("--any", help="Until one has ended, not all.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Wait until tasks have ended. Exit code 1 if one did not succeed, or if the time is over."""
    from perdure.cli.task_wait import wait_for
    from perdure.domain import ids

    raise typer.Exit(wait_for(store, ids.parse_all(task_ids), timeout=timeout, any_of=any_of, as_json=json))


def listed(page: "Page") -> dict[str, object]:
    """A page of tasks as JSON values: without bodies, which only the view of one task has."""
    from perdure.cli.output import plain

    rows = [{name: value for name, value in plain(row).items() if name not in BODIES} for row in page.rows]
    return {"tasks": rows, "cursor": page.cursor}


async def fill_page(session: "Session", where: "TaskFilter", limit: int, cursor: str | None, oldest: bool) -> "Page":
    """One page of `limit` rows: pages of a filtered list may be short, so several may have to be read."""
    from perdure.store.sort import Sort
    from perdure.store.views import Page

    sort = Sort.OLDEST if oldest else Sort.NEWEST
    rows: list[TaskView] = []
    while True:
        page = await session.views.tasks(session.organization, where, limit - len(rows), cursor, sort)
        rows += page.rows
        cursor = page.cursor
        if cursor is None or len(rows) >= limit:
            return Page(rows, cursor)


async def found(session: "Session", task_id: str) -> "TaskView":
    """The task of that id. Raises `NotFound`."""
    from perdure.errors import NotFound

    view = await session.views.task(session.organization, task_id)
    if view is None and await session.views.job(session.organization, task_id) is not None:
        raise NotFound(f"{task_id} is a job, not a task: see `perdure job`", what="task", id=task_id)
    if view is None:
        raise NotFound(f"there is no task {task_id} in this store", what="task", id=task_id)
    return view


def chosen(text: str, of: "type[StrEnum]", what: str) -> str:
    """`text` if it is one of the words. Raises `Malformed` with the words."""
    words = [each.value for each in of]
    if text not in words:
        raise Malformed(f"there is no {what} {text!r}; they are {', '.join(words)}", field=what)
    return text


def _cancel_words(answer: "Cancelled") -> str:
    return {
        "cancelled": "is cancelled",
        "cancelling": "is asked to stop",
        "already": f"was cancelled before ({answer.state})",
        "ended": f"has ended: {answer.state} ({answer.reason})",
        "not_found": "is not known here",
    }[answer.answer.value]
