"""`perdure kind ...`: see the kinds that workers have declared, pause and resume them."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.engine.kinds import Kind

app = typer.Typer(help="Kinds: list, pause, resume.", no_args_is_help=True, rich_markup_mode=None)

KindName = Annotated[str, typer.Argument(metavar="KIND", help="The kind of task.", show_default=False)]


@app.command("list")
def list_kinds(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the kinds that workers have declared, with their limits and whether they are paused."""
    from perdure.cli.output import write_json, write_table
    from perdure.cli.session import on_store

    async def read(session: "Session") -> "list[Kind]":
        return await session.operations.kinds(session.principal)

    kinds = on_store(store, read)
    if json:
        write_json({"kinds": [_facts(each) for each in kinds]})
        return
    write_table(
        ("KIND", "PAUSED", "QUEUE", "PRIORITY", "LIMITS", "TAKE TURNS BY"),
        [
            (
                each.name,
                "yes" if each.paused else "no",
                each.defaults.queue,
                each.defaults.priority,
                _limits(each),
                ", ".join(each.defaults.fair_by) or "-",
            )
            for each in kinds
        ],
        "no kinds",
    )


@app.command("pause")
def pause(kind: KindName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let no task of a kind begin, in any queue, whatever its workers declare; what runs goes on."""
    _set_paused(kind, True, store, json)


@app.command("resume")
def resume(kind: KindName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let the tasks of a paused kind begin again."""
    _set_paused(kind, False, store, json)


def _set_paused(kind: str, paused: bool, store: str | None, json: bool) -> None:
    from perdure.cli.output import write_json
    from perdure.cli.policies import change_policy
    from perdure.cli.session import on_store

    async def change(session: "Session") -> None:
        await change_policy(session, "kind", kind, {"paused": paused})

    on_store(store, change, create=True)
    if json:
        write_json({"kind": kind, "paused": paused})
    else:
        sys.stdout.write(f"kind {kind} is {'paused' if paused else 'running'}\n")


def _facts(kind: "Kind") -> dict[str, object]:
    defaults = kind.defaults
    return {
        "name": kind.name,
        "paused": kind.paused,
        "queue": defaults.queue,
        "priority": defaults.priority,
        "limits": list(defaults.limits),
        "fair_by": list(defaults.fair_by),
    }


def _limits(kind: "Kind") -> str:
    said = []
    for limit in kind.defaults.limits:
        if limit.ordered:
            text = "in order"
        elif limit.concurrency is not None:
            text = f"{limit.concurrency} at once"
        else:
            text = f"{limit.rate} in {limit.per:g} s"
        said.append(f"{text} by {', '.join(limit.by)}" if limit.by else text)
    return "; ".join(said) or "-"
