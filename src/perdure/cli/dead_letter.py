"""`perdure dead-letter ...`: look at the tasks that failed for good, run them again, or be done with them."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from perdure.cli.json_options import EDITED_PAYLOAD, value_of
from perdure.cli.matching import DryRunOption, EndedBefore, EndedFrom, ReasonOption, instant_us, write_matched
from perdure.cli.options import (
    CursorOption,
    JsonOption,
    KindOption,
    LimitOption,
    OldestOption,
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

RATE_DEFAULT = 1000

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of dead letters.", show_default=False)]
AllOption = Annotated[bool, typer.Option("--all", help="All dead letters that the other options let through.")]
RateOption = Annotated[int, typer.Option("--rate", min=1, help="At most so many tasks a second.")]


class Selection(NamedTuple):
    """Which dead letters: these ids, or all that the filter lets through."""

    ids: tuple[str, ...]
    where: "TaskFilter"
    rate: int
    dry_run: bool


class Answer(NamedTuple):
    """What became of one dead letter; `refusal` is empty where it was done."""

    id: str
    refusal: str


Act = Callable[["Session", Sequence[str]], Awaitable[list[Answer]]]


@app.command("list")
def list_dead_letters(
    kind: KindOption = None,
    queue: QueueOption = None,
    reason: ReasonOption = None,
    ended_from: EndedFrom = None,
    ended_before: EndedBefore = None,
    discarded: Annotated[bool, typer.Option("--discarded", help="Those that were discarded too.")] = False,
    oldest: OldestOption = False,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List dead letters, the last that ended first."""
    from perdure.cli.output import shown_instant, write_json, write_note, write_table
    from perdure.cli.session import on_store
    from perdure.cli.task import fill_page, listed

    where = _letters(_Said(kind, queue, reason, ended_from, ended_before, False), None if discarded else False)
    page = on_store(store, lambda session: fill_page(session, where, limit, cursor, oldest))
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
        below=("ENDED", "ERROR"),
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
    reason: ReasonOption = None,
    ended_from: EndedFrom = None,
    ended_before: EndedBefore = None,
    everything: AllOption = False,
    rate: RateOption = RATE_DEFAULT,
    dry_run: DryRunOption = False,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="Run the one that is named with another payload.")
    ] = None,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Run dead letters again: same id, next generation, fresh budgets, history kept."""
    chosen = _selection(ids, _Said(kind, queue, reason, ended_from, ended_before, everything), rate, dry_run)
    _act("requeue", "requeued", _requeue if payload is None else _edited(chosen, payload), chosen, yes, store, json)


@app.command("discard")
def discard(
    ids: Ids = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    reason: ReasonOption = None,
    ended_from: EndedFrom = None,
    ended_before: EndedBefore = None,
    everything: AllOption = False,
    rate: RateOption = RATE_DEFAULT,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Mark dead letters as done with; they stay readable until their retention is over."""
    chosen = _selection(ids, _Said(kind, queue, reason, ended_from, ended_before, everything), rate, dry_run)
    _act("discard", "discarded", _discard, chosen, yes, store, json)


@app.command("purge")
def purge(
    ids: Ids = None,
    kind: KindOption = None,
    queue: QueueOption = None,
    reason: ReasonOption = None,
    ended_from: EndedFrom = None,
    ended_before: EndedBefore = None,
    everything: AllOption = False,
    rate: RateOption = RATE_DEFAULT,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove dead letters for good, with their history."""
    chosen = _selection(ids, _Said(kind, queue, reason, ended_from, ended_before, everything), rate, dry_run)
    _act("purge", "purged", _purge, chosen, yes, store, json)


async def _requeue(session: "Session", task_ids: Sequence[str], payload: Any = None) -> list[Answer]:
    from perdure.errors import PerdureError

    answers = await session.operations.redrive(task_ids, session.principal, payload)
    return [
        Answer(task_id, answer.message if isinstance(answer, PerdureError) else "")
        for task_id, answer in zip(task_ids, answers, strict=True)
    ]


async def _discard(session: "Session", task_ids: Sequence[str]) -> list[Answer]:
    done = await session.operations.discard(task_ids, session.principal)
    return [Answer(each, "" if ok else "it is no dead letter") for each, ok in zip(task_ids, done, strict=True)]


async def _purge(session: "Session", task_ids: Sequence[str]) -> list[Answer]:
    done = await session.operations.purge(task_ids, session.principal)
    refusal = "it is no dead letter, or its job is still open"
    return [Answer(each, "" if ok else refusal) for each, ok in zip(task_ids, done, strict=True)]


class _Said(NamedTuple):
    """What the options say of which dead letters."""

    kinds: list[str] | None
    queues: list[str] | None
    reasons: list[str] | None
    ended_from: str | None
    ended_before: str | None
    everything: bool


def _edited(chosen: Selection, payload: str) -> Act:
    """Run the one dead letter that is named again with another payload. Raises `Malformed`."""
    if len(chosen.ids) != 1:
        raise Malformed("--payload is for one dead letter: name its id", field="payload")
    value = value_of(payload, EDITED_PAYLOAD)

    async def requeue(session: "Session", task_ids: Sequence[str]) -> list[Answer]:
        return await _requeue(session, task_ids, value)

    return requeue


def _selection(task_ids: list[str] | None, said: _Said, rate: int, dry_run: bool) -> Selection:
    from perdure.domain import ids

    if bool(task_ids) == any(said):
        raise Malformed("say which: ids, or --kind, --queue, --reason, --ended-... or --all", field="ids")
    return Selection(tuple(ids.parse_all(task_ids or ())), _filter(said), rate, dry_run)


def _act(
    verb: str, participle: str, act: Act, selection: Selection, yes: bool, store: str | None, as_json: bool
) -> None:
    from perdure.cli.confirm import confirm
    from perdure.cli.output import counted, write_json
    from perdure.cli.session import on_store

    if selection.dry_run:
        write_matched(on_store(store, lambda session: _matched(session, verb, selection)), participle, as_json)
        return
    if not selection.ids or verb == "purge":
        confirm(f"{verb} {_described(selection)}?", yes)
    done, refused = on_store(store, lambda session: _all(session, verb, act, selection))
    if as_json:
        write_json({participle: done, "refused": [{"id": each.id, "message": each.refusal} for each in refused]})
    else:
        if done or not refused:
            sys.stdout.write(f"{counted(done, 'task')} {'is' if done == 1 else 'are'} {participle}\n")
        for answer in refused:
            named = answer.refusal if answer.id in answer.refusal else f"{answer.id}: {answer.refusal}"
            sys.stderr.write(f"perdure: {named}\n")
    if refused:
        raise typer.Exit(2)


async def _matched(session: "Session", verb: str, selection: Selection) -> int:
    """How many there are; of those that are named, how many are dead letters."""
    from perdure.cli import matching
    from perdure.domain.states import TaskState
    from perdure.engine.act_on_matching import Act as Acts
    from perdure.engine.act_on_matching import Matching

    if selection.ids:
        views = [await session.views.task(session.organization, each) for each in selection.ids]
        return sum(view is not None and view.state == TaskState.DEAD_LETTERED for view in views)
    return (await matching.act(session, Matching(Acts(verb), selection.where, dry_run=True))).matched


async def _all(session: "Session", verb: str, act: Act, selection: Selection) -> tuple[int, list[Answer]]:
    """Act on everything selected, no faster than the rate: how many it was done to, and why not to others."""
    import asyncio

    from perdure.cli import matching
    from perdure.engine.act_on_matching import Act as Acts
    from perdure.engine.act_on_matching import Matching

    if not selection.ids:
        asked = Matching(Acts(verb), selection.where, rate=min(selection.rate, RATE_DEFAULT))
        step = await matching.act(session, asked, selection.rate)
        return sum(step.counts.values()), [Answer(id, error.message) for id, error in step.refused]
    size = min(matching.STEP_MAX_TASKS, selection.rate)
    answers: list[Answer] = []
    for start in range(0, len(selection.ids), size):
        some = selection.ids[start : start + size]
        await asyncio.sleep(size / selection.rate if start else 0.0)
        answers += await act(session, some)
    refused = [answer for answer in answers if answer.refusal]
    return len(answers) - len(refused), refused


def _filter(said: _Said) -> "TaskFilter":
    """What the options let through. Raises `Malformed`."""
    from perdure.cli.task import chosen
    from perdure.domain.states import Reason
    from perdure.store.views import TaskFilter

    return TaskFilter(
        kinds=tuple(said.kinds or ()),
        queues=tuple(said.queues or ()),
        reasons=tuple(Reason(chosen(each, Reason, "reason")) for each in said.reasons or ()),
        ended_from_us=instant_us(said.ended_from, "--ended-from"),
        ended_before_us=instant_us(said.ended_before, "--ended-before"),
    )


def _letters(said: _Said, discarded: bool | None) -> "TaskFilter":
    """The same of dead letters alone; `discarded`: those only, the others only, or both."""
    from perdure.domain.states import TaskState

    return _filter(said)._replace(states=(TaskState.DEAD_LETTERED,), discarded=discarded)


def _described(selection: Selection) -> str:
    from perdure.cli.output import counted

    if selection.ids:
        return counted(len(selection.ids), "dead letter")
    where = selection.where
    kinds = f" of kind {' or '.join(where.kinds)}" if where.kinds else ""
    queues = f" in queue {' or '.join(where.queues)}" if where.queues else ""
    reasons = f" that ended for {' or '.join(where.reasons)}" if where.reasons else ""
    between = where.ended_from_us is not None or where.ended_before_us is not None
    return f"all dead letters{kinds}{queues}{reasons}{' of that time' if between else ''}"
