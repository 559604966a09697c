"""`perdure kind ...`: see the kinds that workers have declared, pause and resume them."""

import sys
from collections.abc import Awaitable, Callable
from json import dumps as json_text
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.breakers import breaker_facts, breaker_line, breaker_rule
from perdure.cli.options import CursorOption, JsonOption, LimitOption, StoreOption, duration
from perdure.cli.policies import set_paused
from perdure.domain.limits import SECOND_US

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.domain.retry import Retry
    from perdure.engine.kinds import Kind
    from perdure.store.views import BreakerView, Page

app = typer.Typer(
    help="Kinds: list, show, gates, pause, resume, trip, reset.", no_args_is_help=True, rich_markup_mode=None
)

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


@app.command("show")
def show(kind: KindName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show what holds for a kind, and how its breaker stands."""
    from perdure.cli.output import write_facts, write_json
    from perdure.cli.session import on_store
    from perdure.errors import NotFound

    async def read(session: "Session") -> "tuple[Kind, BreakerView | None]":
        known = [each for each in await session.operations.kinds(session.principal) if each.name == kind]
        if not known:
            raise NotFound(f"there is no kind {kind}", what="kind", id=kind)
        breakers = await session.operations.views.breakers(session.organization)
        return known[0], next((each for each in breakers if each.kind == kind), None)

    found, breaker = on_store(store, read)
    if json:
        known = {"retry": found.defaults.retry, "schema": found.schema}
        write_json({"kind": _facts(found) | known, "breaker": None if breaker is None else breaker_facts(breaker)})
        return
    facts = [
        ("kind", found.name),
        ("paused", "yes" if found.paused else "no"),
        ("queue", found.defaults.queue),
        ("priority", found.defaults.priority),
        ("payload", _payload(found.schema)),
        ("attempts", _retry(found.defaults.retry)),
        ("timeout", _timeout(found)),
        ("limits", _limits(found)),
        ("take turns by", ", ".join(found.defaults.fair_by) or "-"),
        ("unique", _unique(found)),
        ("breaker", breaker_line(breaker) if breaker is not None else "-"),
        ("it opens", breaker_rule(found.defaults.breaker) if found.defaults.breaker is not None else "-"),
    ]
    write_facts(facts)


@app.command("gates")
def gates(
    kind: KindName,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", help="Only the gates of this value of the fields `by`; may be repeated."),
    ] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only the gates at which tasks wait.")] = False,
    limit: LimitOption = 20,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the gates of a kind's limits: who has their slots, how many tasks wait, who is next."""
    from perdure.cli.gates import write_gates
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.store.flow_views import GateFilter

    async def read(session: "Session") -> "Page":
        where = GateFilter(tuple(key or ()), waiting)
        return await session.operations.flow.gates(kind, session.principal, where, limit, cursor)

    page = on_store(store, read)
    if json:
        write_json({"gates": page.rows, "cursor": page.cursor})
    else:
        write_gates(page)


@app.command("pause")
def pause(kind: KindName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let no task of a kind begin, in any queue, whatever its workers declare; what runs goes on."""
    set_paused("kind", kind, True, store, json)


@app.command("resume")
def resume(kind: KindName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let the tasks of a paused kind begin again."""
    set_paused("kind", kind, False, store, json)


@app.command("trip")
def trip(
    kind: KindName,
    open_for: Annotated[
        float | None,
        typer.Option(
            "--for",
            parser=duration,
            metavar="DURATION",
            help="For how long; as the kind says if not.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Open the breaker of a kind: nothing of it begins for a while, then probes do."""

    async def turn(session: "Session") -> "BreakerView":
        return await session.operations.flow.trip(kind, session.principal, open_for)

    _turn(turn, store, json)


@app.command("reset")
def reset(kind: KindName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Close the breaker of a kind: its tasks begin again, and a new count of failures."""

    async def turn(session: "Session") -> "BreakerView":
        return await session.operations.flow.reset(kind, session.principal)

    _turn(turn, store, json)


def _turn(turn: "Callable[[Session], Awaitable[BreakerView]]", store: str | None, json: bool) -> None:
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store

    breaker = on_store(store, turn)
    if json:
        write_json(breaker_facts(breaker))
    else:
        sys.stdout.write(f"kind {breaker.kind}: breaker {breaker_line(breaker)}\n")


def _facts(kind: "Kind") -> dict[str, object]:
    defaults = kind.defaults
    return {
        "name": kind.name,
        "paused": kind.paused,
        "queue": defaults.queue,
        "priority": defaults.priority,
        "limits": list(defaults.limits),
        "fair_by": list(defaults.fair_by),
        "breaker": defaults.breaker,
        "unique": defaults.unique,
        "max_attempts": defaults.retry.max_attempts,
        "timeout": None if defaults.timeout_us is None else defaults.timeout_us / SECOND_US,
    }


def _payload(schema: dict[str, Any] | None) -> str:
    """The fields that a kind takes, as far as its schema tells: their types, and which may be left out."""
    if schema is None:
        return "not told: any JSON"
    fields, needed = schema.get("properties"), schema.get("required", [])
    if not isinstance(fields, dict):
        return _type(schema)
    told = [f"{name}: {_type(each)}{'' if name in needed else ' (optional)'}" for name, each in fields.items()]
    return ", ".join(told) or "no fields"


def _type(schema: Any) -> str:
    """What a value may be, in a word; what is inside it is left to the schema."""
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return " | ".join(json_text(each) for each in schema["enum"])
    if "const" in schema:
        return json_text(schema["const"])
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if any_of := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(_type(each) for each in any_of)
    type = schema.get("type", "any")
    if type == "array" and "items" in schema:
        return f"array of {_type(schema['items'])}"
    return " | ".join(type) if isinstance(type, list) else str(type)


def _retry(retry: "Retry") -> str:
    if retry.max_attempts == 1:
        return "1"
    waits = f"{retry.backoff} from {retry.base:g} s" if retry.backoff != "fixed" else f"always {retry.base:g} s"
    cap = f", at most {retry.cap:g} s" if retry.backoff != "fixed" else ""
    jitter = f", give or take {retry.jitter:.0%}" if retry.jitter else ""
    return f"{retry.max_attempts}; between them {waits}{cap}{jitter}"


def _timeout(kind: "Kind") -> str:
    timeout_us = kind.defaults.timeout_us
    return "-" if timeout_us is None else f"{timeout_us / SECOND_US:g} s"


def _unique(kind: "Kind") -> str:
    unique = kind.defaults.unique
    if unique is None:
        return "-"
    return f"{unique.on_conflict}, by {', '.join(unique.by)}" if unique.by else str(unique.on_conflict)


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
