"""`perdure dead-letter ...`: look at the tasks that failed for good, run them again, or be done with them."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from perdure.cli.options import (
    CursorOption,
    JsonOption,
    KindOption,
    LimitOption,
    QueueOption,
    StoreOption,
    TaskId,
    YesOption,
)
from perdure.errors import Malformed

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.store.views import TaskFilter

app = typer.Typer(
    help="Dead letters: list, show, requeue, discard, purge.", no_args_is_help=True, rich_markup_mode=None
)

BATCH_MAX_TASKS = 500
RATE_DEFAULT = 1000

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of dead letters.", show_default=False)]
AllOption = Annotated[bool, typer.Option("--all", help="All dead letters (of --kind and --queue, if said).")]
RateOption = Annotated[int, typer.Option("--rate", min=1, help="At most so many tasks a second.")]


class Selection(NamedTuple):
    """Which dead letters: these ids, or all that fit."""

    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    queues: tuple[str, ...]
    rate: int


class Answer(NamedTuple):
    """What became of one dead letter; `refusal` is empty where it was done."""

    id: str
    refusal: str


Act = Callable[["Session", Sequence[str]], Awaitable[list[Answer]]]


@app.command("list")
def list_dead_letters(
    kind: KindOption = None,
    queue: QueueOption = None,
    discarded: Annotated[bool, typer.Option("--discarded", help="Those that were discarded too.")] = False,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List dead letters, newest first."""
    from perdure.cli.output import shown_instant, write_json, write_note, write_table
    from perdure.cli.session import on_store
    from perdure.cli.task import fill_page, listed

    where = _filter(tuple(kind or ()), tuple(queue or ()), None if discarded else False)
    page = on_store(store, lambda session: fill_page(session, where, limit, cursor))
    if json:
        write_json(listed(page))
        return
    write_table(
        ("ID", "KIND", "QUEUE", "REASON", "ENDED", "ERROR"),
        [
            (
                view.id,
                view.kind,
                view.queue,
                view.reason,
                shown_instant(view.finished_us),
                f"{view.last_error.type}: {view.last_error.message}" if view.last_error else "-",
            )
            for view in page.rows
        ],
        "no dead letters",
    )
    if page.cursor is not None:
        write_note(f"more with --cursor {page.cursor}")


@app.command("show")
def show(task_id: TaskId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show one dead letter with its payload, error and attempts."""
    from perdure.cli import task

    task.show(task_id, store, json)


@app.command("requeue")
def requeue(
    ids: Ids = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    everything: AllOption = False,
    rate: RateOption = RATE_DEFAULT,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Run dead letters again: same id, next generation, fresh budgets, history kept."""
    _act("requeue", "requeued", _requeue, _selection(ids, kind, queue, everything, rate), yes, store, json)


@app.command("discard")
def discard(
    ids: Ids = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    everything: AllOption = False,
    rate: RateOption = RATE_DEFAULT,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Mark dead letters as done with; they stay readable until their retention is over."""
    _act("discard", "discarded", _discard, _selection(ids, kind, queue, everything, rate), yes, store, json)


@app.command("purge")
def purge(
    ids: Ids = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    everything: AllOption = False,
    rate: RateOption = RATE_DEFAULT,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove dead letters for good, with their history."""
    _act("purge", "purged", _purge, _selection(ids, kind, queue, everything, rate), yes, store, json)


async def _requeue(session: "Session", task_ids: Sequence[str]) -> list[Answer]:
    from perdure.errors import PerdureError

    answers = await session.operations.redrive(task_ids, session.principal)
    return [
        Answer(task_id, answer.message if isinstance(answer, PerdureError) else "")
        for task_id, answer in zip(task_ids, answers, strict=True)
    ]


async def _discard(session: "Session", task_ids: Sequence[str]) -> list[Answer]:
    done = await session.operations.discard(task_ids, session.principal)
    return [Answer(each, "" if ok else "is no dead letter") for each, ok in zip(task_ids, done, strict=True)]


async def _purge(session: "Session", task_ids: Sequence[str]) -> list[Answer]:
    done = await session.operations.purge(task_ids, session.principal)
    refusal = "is no dead letter, or its job is still open"
    return [Answer(each, "" if ok else refusal) for each, ok in zip(task_ids, done, strict=True)]


def _selection(
    task_ids: list[str] | None, kind: list[str] | None, queue: list[str] | None, everything: bool, rate: int
) -> Selection:
    from perdure.domain import ids

    by_filter = bool(kind or queue or everything)
    if bool(task_ids) == by_filter:
        raise Malformed("say which: ids, or --kind, --queue or --all", field="ids")
    parsed = tuple(ids.parse(each) for each in task_ids or ())
    return Selection(parsed, tuple(kind or ()), tuple(queue or ()), rate)


def _act(
    verb: str, participle: str, act: Act, selection: Selection, yes: bool, store: str | None, as_json: bool
) -> None:
    from perdure.cli.confirm import confirm
    from perdure.cli.output import counted, write_json
    from perdure.cli.session import on_store

    if not selection.ids or verb == "purge":
        confirm(f"{verb} {_described(selection)}?", yes)
    answers = on_store(store, lambda session: _in_batches(session, act, selection))
    refused = [answer for answer in answers if answer.refusal]
    done = len(answers) - len(refused)
    if as_json:
        write_json({participle: done, "refused": [{"id": each.id, "message": each.refusal} for each in refused]})
    else:
        if done or not refused:
            sys.stdout.write(f"{counted(done, 'task')} {'is' if done == 1 else 'are'} {participle}\n")
        for answer in refused:
            named = answer.refusal if answer.id in answer.refusal else f"{answer.id} {answer.refusal}"
            sys.stderr.write(f"perdure: {named}\n")
    if refused:
        raise typer.Exit(2)


async def _in_batches(session: "Session", act: Act, selection: Selection) -> list[Answer]:
    """Act on everything selected, no faster than the rate."""
    import asyncio

    size = min(BATCH_MAX_TASKS, selection.rate)
    answers: list[Answer] = []
    pause = 0.0
    async for batch in _batches(session, selection, size):
        await asyncio.sleep(pause)
        answers += await act(session, batch)
        pause = len(batch) / selection.rate
    return answers


async def _batches(session: "Session", selection: Selection, size: int) -> AsyncIterator[Sequence[str]]:
    if selection.ids:
        for start in range(0, len(selection.ids), size):
            yield selection.ids[start : start + size]
        return
    where = _filter(selection.kinds, selection.queues, False)
    cursor: str | None = None
    while True:
        page = await session.views.tasks(session.organization, where, size, cursor)
        if page.rows:
            yield [view.id for view in page.rows]
        cursor = page.cursor
        if cursor is None:
            return


def _filter(kinds: tuple[str, ...], queues: tuple[str, ...], discarded: bool | None) -> "TaskFilter":
    from perdure.domain.states import TaskState
    from perdure.store.views import TaskFilter

    return TaskFilter(states=(TaskState.DEAD_LETTERED,), kinds=kinds, queues=queues, discarded=discarded)


def _described(selection: Selection) -> str:
    from perdure.cli.output import counted

    if selection.ids:
        return counted(len(selection.ids), "dead letter")
    kinds = f" of kind {' or '.join(selection.kinds)}" if selection.kinds else ""
    queues = f" in queue {' or '.join(selection.queues)}" if selection.queues else ""
    return f"all dead letters{kinds}{queues}"
