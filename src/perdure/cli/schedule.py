"""`perdure schedule ...`: declare, look at, pause, resume, ask for and remove schedules."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli import schedule_asking
from perdure.cli.options import CursorOption, JsonOption, LimitOption, StoreOption, YesOption
from perdure.cli.schedule_asking import on_its_clock
from perdure.domain.limits import SECOND_US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perdure.cli.session import Session
    from perdure.engine.apply_schedules import Step
    from perdure.engine.schedule_views import FirePage, SchedulePage, ScheduleView

app = typer.Typer(
    help="Schedules: list, show, apply, preview, pause, resume, trigger, backfill, fires, delete.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
schedule_asking.add_to(app)

LATE_US = 60 * SECOND_US
LATE_SHOWN = 5

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the schedule.", show_default=False)]


@app.command("list")
def list_schedules(
    set: Annotated[
        str | None, typer.Option("--set", help="Only those of this declared set.", show_default=False)
    ] = None,
    limit: LimitOption = 100,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List schedules with their next and their last instant."""
    from perdure.cli.output import write_json, write_note, write_table
    from perdure.cli.session import on_store

    async def read(session: "Session") -> "tuple[SchedulePage, int]":
        page = await session.operations.schedules.page(session.principal, limit, cursor, set)
        return page, session.system.clock.wall_us()

    page, now_us = on_store(store, read)
    if json:
        write_json(page)
        return
    write_table(
        ("SCHEDULE", "WHEN", "MAKES", "NEXT", "LAST", "OUTCOME"),
        [
            (
                each.name,
                when(each),
                makes(each),
                "paused" if each.paused else on_its_clock(each, each.next_us),
                on_its_clock(each, each.last_us),
                each.last_outcome if each.last_reason is None else f"{each.last_outcome}: {each.last_reason}",
            )
            for each in page.schedules
        ],
        "no schedules",
    )
    if page.cursor is not None:
        write_note(f"there are more: --cursor {page.cursor}")
    _note_overdue(page, now_us)


@app.command("show")
def show(name: Name, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show one schedule: what was declared, and how it stands."""
    from perdure.cli.session import on_store
    from perdure.errors import NotFound

    async def read(session: "Session") -> "ScheduleView":
        found = await session.operations.schedules.get(name, session.principal)
        if found is None:
            raise NotFound(f"there is no schedule {name!r}", what="schedule", id=name)
        return found

    write_view(on_store(store, read), json)


@app.command("fires")
def fires(
    name: Name,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what came of the instants of a schedule, the latest first."""
    from perdure.cli.output import write_json, write_note, write_table
    from perdure.cli.session import on_store

    async def read(session: "Session") -> "tuple[FirePage, ScheduleView | None]":
        page = await session.operations.schedules.fires(name, session.principal, limit, cursor)
        return page, None if json else await session.operations.schedules.get(name, session.principal)

    page, view = on_store(store, read)
    if json:
        write_json(page)
        return
    write_table(
        ("INSTANT", "INSTANTS", "CAUSE", "OUTCOME", "WHY", "TASK OR JOB"),
        [
            (
                on_its_clock(view, each.first_us),
                each.instants,
                each.cause,
                each.outcome,
                each.reason if each.text is None else f"{each.reason}: {each.text}",
                each.task_id or each.job_id,
            )
            for each in page.fires
        ],
        "nothing has come of it yet",
    )
    if page.cursor is not None:
        write_note(f"there are more: --cursor {page.cursor}")


@app.command("apply")
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A set in YAML or JSON.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Converge to a declared set: create and change what is in it, delete what is gone from it."""
    from perdure.cli.output import write_json, write_table
    from perdure.cli.session import on_store
    from perdure.cli.unserved import note_new_kinds
    from perdure.engine.apply_schedules import ApplySchedules
    from perdure.errors import Refused
    from perdure.jobfile.schedule_file import read_schedule_file

    wanted = read_schedule_file(file)

    async def converge(session: "Session") -> "list[Step]":
        apply = ApplySchedules(session.operations.schedules)
        if not json:
            await note_new_kinds(session, wanted.kinds())
        try:
            return await apply(wanted.set, wanted.schedules, session.principal, dry_run=dry_run)
        except Refused as refusal:
            schedule = refusal.fields.get("schedule")
            raise (wanted.placed(schedule, refusal) if isinstance(schedule, str) else refusal) from None

    steps = on_store(store, converge, create=not dry_run, quiet=json)
    if json:
        write_json({"set": wanted.set, "dry_run": dry_run, "steps": steps})
        return
    write_table(
        ("SCHEDULE", "WOULD" if dry_run else "DONE", "FIELDS"),
        [(each.name, each.action, ", ".join(each.fields) or "-") for each in steps],
        "nothing in this set, and nothing to delete",
    )


@app.command("pause")
def pause(name: Name, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let nothing come of a schedule until it is resumed: its instants are skipped."""
    from perdure.cli.session import on_store

    write_view(on_store(store, lambda session: session.operations.schedules.pause(name, session.principal)), json)


@app.command("resume")
def resume(name: Name, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let a schedule go on with its next instant."""
    from perdure.cli.session import on_store

    write_view(on_store(store, lambda session: session.operations.schedules.resume(name, session.principal)), json)


@app.command("delete")
def delete(name: Name, yes: YesOption = False, store: StoreOption = None, json: JsonOption = False) -> None:
    """Remove a schedule; the tasks and jobs that it made stay."""
    from perdure.cli.confirm import confirm
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.errors import NotFound

    confirm(f"delete schedule {name}?", yes)
    if not on_store(store, lambda session: session.operations.schedules.delete(name, session.principal)):
        raise NotFound(f"there is no schedule {name!r}", what="schedule", id=name)
    if json:
        write_json({"name": name, "deleted": True})
    else:
        sys.stdout.write(f"schedule {name} is deleted\n")


def overdue(schedules: "Sequence[ScheduleView]", now_us: int) -> list[str]:
    """The names of those that should have come a minute ago: as it seems, no process runs the duties."""
    return [
        each.name
        for each in schedules
        if not each.paused and each.due_us is not None and each.waiting_us is None and each.due_us < now_us - LATE_US
    ]


def _note_overdue(page: "SchedulePage", now_us: int) -> None:
    from perdure.cli.output import write_note

    if late := overdue(page.schedules, now_us):
        write_note(
            f"nobody fires {', '.join(late[:LATE_SHOWN])}, due for more than a minute: `perdure serve --role sweeper`"
            " does it, or `perdure worker` on the store itself; workers over HTTP do not"
        )


def when(view: "ScheduleView") -> str:
    """When a schedule comes, in a few words."""
    said = view.definition
    if "cron" in said:
        return f"{said['cron']} {said.get('time_zone', 'UTC')}"
    return f"every {said['every']:g} s" if "every" in said else f"at {said.get('at')}"


def makes(view: "ScheduleView") -> str:
    """What a schedule makes, in a few words."""
    said = view.definition
    return f"task {said['task']['kind']}" if "task" in said else f"job {said['job']['name']}"


def write_view(view: "ScheduleView", as_json: bool) -> None:
    """One schedule, whole."""
    from perdure.cli.output import shown_instant, write_facts, write_json

    if as_json:
        write_json(view)
        return
    outcome = view.last_outcome if view.last_reason is None else f"{view.last_outcome}: {view.last_reason}"
    said = {name: value for name, value in view.definition.items() if name not in ("cron", "every", "at", "time_zone")}
    write_facts(
        [
            ("schedule", view.name),
            ("when", when(view)),
            ("makes", makes(view)),
            *((name, _said(value)) for name, value in sorted(said.items())),
            ("paused", f"since {shown_instant(view.paused_us)} by {view.paused_by}" if view.paused else "no"),
            ("next", None if view.paused else on_its_clock(view, view.next_us)),
            ("due", None if view.paused else on_its_clock(view, view.due_us)),
            ("waiting", on_its_clock(view, view.waiting_us) if view.waiting_us is not None else None),
            ("last", on_its_clock(view, view.last_us)),
            ("outcome", outcome),
            ("made", view.last_task_id or view.last_job_id),
            ("declared", f"{shown_instant(view.declared_us)} by {view.declared_by}"),
            ("etag", view.etag),
        ]
    )


def _said(value: object) -> str:
    """A field of a definition as it may be written into a file."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
