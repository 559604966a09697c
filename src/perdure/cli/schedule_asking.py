"""`perdure schedule preview | trigger | backfill`: instants that somebody asks for."""

import contextlib
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.options import JsonOption, StoreOption
from perdure.errors import Invalid, Malformed, NotFound

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.engine.schedule_definition import ScheduleDefinition
    from perdure.engine.schedule_views import ScheduleView
    from perdure.store.schedules import Made

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the schedule.", show_default=False)]
OptionalName = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="The name of the schedule.", show_default=False)
]
Text = str | None


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group of schedules."""
    app.command("preview")(preview)
    app.command("trigger")(trigger)
    app.command("backfill")(backfill)


def preview(
    name: OptionalName = None,
    cron: Annotated[Text, typer.Option("--cron", help="Preview this expression instead.", show_default=False)] = None,
    time_zone: Annotated[Text, typer.Option("--time-zone", help="On whose clock.", show_default="UTC")] = None,
    gap: Annotated[Text, typer.Option("--gap", help="after or skip.", show_default=False)] = None,
    fold: Annotated[Text, typer.Option("--fold", help="first or both.", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Preview a schedule of this set, which need not be applied.", show_default=False),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1000, help="How many instants.")] = 10,
    after: Annotated[
        Text, typer.Option("--after", help="After this instant; now by default.", show_default=False)
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the next instants of a schedule; of a cron expression or of a file without any store."""
    from perdure.cli.output import instant, write_json, write_line

    after_us = None if after is None else moment_us(after, "after")
    if cron is not None and file is None and name is None:
        found, zone = _of_expression(cron, time_zone, gap, fold, count, after_us)
    elif cron is not None or (name is None and file is None):
        raise Malformed("name a schedule, of the store or with --file of a file, or give --cron", field="name")
    elif file is not None:
        found, zone = _of_file(file, name, count, after_us)
    else:
        found, zone = _of_schedule(str(name), count, after_us, store)
    if json:
        write_json({"instants": [instant(each) for each in found]})
        return
    for each in found:
        write_line(datetime.fromtimestamp(each // 1_000_000, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %z %a"))


def _of_expression(
    cron: str, time_zone: str | None, gap: Any, fold: Any, count: int, after_us: int | None
) -> tuple[list[int], Any]:
    from perdure.engine.requests import TaskRequest
    from perdure.engine.schedule_definition import ScheduleDefinition

    definition = ScheduleDefinition(cron=cron, time_zone=time_zone, gap=gap, fold=fold, task=TaskRequest(kind="any"))
    return _of_definition(definition, count, after_us)


def _of_file(path: Path, name: str | None, count: int, after_us: int | None) -> tuple[list[int], Any]:
    """Of a schedule that is declared in a file, as if it was made now."""
    from perdure.errors import Refused
    from perdure.jobfile.schedule_file import read_schedule_file

    wanted = read_schedule_file(path)
    if name is None and len(wanted.schedules) == 1:
        [name] = wanted.schedules
    if name is None or name not in wanted.schedules:
        raise Malformed(f"name one of the schedules of {path}: {', '.join(wanted.schedules)}", field="name")
    try:
        return _of_definition(wanted.schedules[name], count, after_us)
    except Refused as refusal:
        raise wanted.placed(name, refusal) from None


def _of_definition(definition: "ScheduleDefinition", count: int, after_us: int | None) -> tuple[list[int], Any]:
    from zoneinfo import ZoneInfo

    from perdure.ambient import SystemClock
    from perdure.domain.schedule import due_instants
    from perdure.engine.schedule_definition import understand
    from perdure.engine.zones import Zones

    now_us = SystemClock().wall_us()
    timing = understand("", "", definition, now_us, Zones(), now_us).timing
    after = now_us if after_us is None else after_us
    return list(due_instants(timing, after, count)), ZoneInfo(definition.time_zone or "UTC")


def _of_schedule(name: str, count: int, after_us: int | None, store: str | None) -> tuple[list[int], Any]:
    from zoneinfo import ZoneInfo

    from perdure.cli.session import on_store

    is_file = Path(name).is_file()

    async def read(session: "Session") -> tuple[list[int], Any]:
        schedules = session.operations.schedules
        try:
            found = await schedules.preview(name, count, session.principal, after_us)
        except NotFound as error:
            if not is_file:
                raise
            hint = f"a schedule of the file {name} is previewed with --file {name} and its name"
            raise NotFound(f"{error.message}; {hint}", **error.fields) from None
        view = await schedules.get(name, session.principal)
        return found, ZoneInfo("UTC" if view is None else view.definition.get("time_zone", "UTC"))

    return on_store(store, read)


def trigger(
    name: Name,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key again makes nothing more.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Let a schedule make its task or job now, paused or not."""
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store

    made = on_store(
        store, lambda session: session.operations.schedules.trigger(name, session.principal, idempotency_key)
    )
    if json:
        write_json(_plain(made))
    else:
        sys.stdout.write(f"{made.task_id or made.job_id}\n")


def backfill(
    name: Name,
    start: Annotated[str, typer.Option("--from", help="From this instant on, such as 2026-11-01T00:00+01:00.")],
    end: Annotated[str, typer.Option("--to", help="Before this instant.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Let the instants of a time that has passed make what they did not."""
    from perdure.cli.output import write_json, write_table
    from perdure.cli.session import on_store

    start_us, end_us = moment_us(start, "from"), moment_us(end, "to")

    async def fill(session: "Session") -> "tuple[list[Made], ScheduleView | None]":
        view = None if json else await session.operations.schedules.get(name, session.principal)
        return [*(await session.operations.schedules.backfill(name, start_us, end_us, session.principal)).made], view

    made, view = on_store(store, fill)
    if json:
        write_json({"made": [_plain(each) for each in made]})
    else:
        write_table(
            ("INSTANT", "TASK OR JOB", "NOTE"),
            [(on_its_clock(view, each.instant_us), each.task_id or each.job_id, _note(each)) for each in made],
            "no instants in this time",
        )
    if any(each.error is not None for each in made):
        raise typer.Exit(1)


def on_its_clock(view: "ScheduleView | None", us: int | None) -> str:
    """An instant as the clock shows it that the expression is read on, or else this machine's, with the offset."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if us is None:
        return "-"
    zone = None
    if view is not None and "cron" in view.definition:
        with contextlib.suppress(ZoneInfoNotFoundError):  # A gateway may know zones that this machine does not.
            zone = ZoneInfo(view.definition.get("time_zone", "UTC"))
    return f"{datetime.fromtimestamp(us // 1_000_000, UTC).astimezone(zone):%Y-%m-%d %H:%M:%S %z}"


def _note(made: "Made") -> str:
    if made.error is not None:
        return made.error.message
    return "was there" if made.replayed else "-"


def _plain(made: "Made") -> dict[str, Any]:
    from perdure.cli.output import instant

    return {
        "instant_at": instant(made.instant_us),
        "task_id": made.task_id,
        "job_id": made.job_id,
        "replayed": made.replayed,
        "refusal": None if made.error is None else made.error.message,
    }


def moment_us(text: str, field: str) -> int:
    """An instant as people write it. Raises `Malformed` without a time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Malformed(f"--{field} {text!r} is no instant, such as 2026-11-01T00:00+01:00", field=field) from None
    if moment.tzinfo is None:
        raise Malformed(f"--{field} {text!r} has no time zone: end it with Z or an offset such as +01:00", field=field)
    try:
        return round(moment.timestamp() * 1_000_000)
    except (OverflowError, ValueError):
        raise Invalid(f"--{field} {text!r} is no instant of our calendar", field=field) from None
