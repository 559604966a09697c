"""Doing something to all tasks that a filter lets through, from the command line: step by step, at a pace."""

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.errors import Malformed

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.engine.act_on_matching import Matching, Step

STEP_MAX_TASKS = 500

EndedFrom = Annotated[
    str | None,
    typer.Option("--ended-from", metavar="INSTANT", help="Only what ended at 2026-12-01T08:00:00Z or later."),
]
EndedBefore = Annotated[str | None, typer.Option("--ended-before", metavar="INSTANT", help="Only what ended before.")]
ReasonOption = Annotated[
    list[str] | None, typer.Option("--reason", help="Only ended for this reason; may be repeated.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only count what would be done; change nothing.")]


def instant_us(text: str | None, option: str) -> int | None:
    """ISO 8601 with a time zone, as microseconds since 1970. Raises `Malformed`."""
    if text is None:
        return None
    from perdure.wire.shapes import instant_us as us_of

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Malformed(f"{option} {text!r} is not a time like 2026-12-01T08:00:00Z", field=option) from None
    if moment.tzinfo is None:
        raise Malformed(f"{option} {text!r} has no time zone; add Z or +01:00", field=option)
    return us_of(moment)


async def act(session: "Session", asked: "Matching", rate: int | None = None) -> "Step":
    """All steps together, no faster than `rate` tasks a second."""
    import asyncio

    from perdure.engine.act_on_matching import Step

    size = STEP_MAX_TASKS if rate is None or asked.dry_run else min(STEP_MAX_TASKS, rate)
    asked, pause = asked._replace(limit=size), 0.0
    total = Step(0, {}, [], None)
    while True:
        await asyncio.sleep(pause)
        step = await session.operations.act_on_matching(asked, session.principal)
        counts = {name: total.counts.get(name, 0) + step.counts.get(name, 0) for name in {*total.counts, *step.counts}}
        total = Step(total.matched + step.matched, counts, [*total.refused, *step.refused], None)
        if step.cursor is None:
            return total
        asked = asked._replace(cursor=step.cursor)
        pause = step.matched / rate if rate is not None and not asked.dry_run else 0.0


def write_matched(matched: int, participle: str, as_json: bool) -> None:
    """What a dry run found."""
    from perdure.cli.output import counted, write_json

    if as_json:
        write_json({"matched": matched})
    else:
        sys.stdout.write(f"{counted(matched, 'task')} would be {participle}\n")
