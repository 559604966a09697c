"""`perdure submit KIND JSON`: one task."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.options import JsonOption, StoreOption
from perdure.errors import Malformed

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.engine.requests import TaskRequest
    from perdure.store.ledger import Submitted


def submit(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The kind of the task.", show_default=False)],
    payload: Annotated[
        str, typer.Argument(metavar="JSON", help="The payload; @FILE reads a file, - standard input.")
    ] = "null",
    queue: Annotated[str | None, typer.Option(help="The queue.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=9, help="9 is most urgent; 4 if not said.")] = None,
    delay: Annotated[float | None, typer.Option(min=0, help="Seconds until it may run.")] = None,
    run_at: Annotated[str | None, typer.Option(help="When it may run: 2026-12-01T08:00:00Z.")] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="How often its handler may fail.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds that one attempt may take.")] = None,
    ttl: Annotated[float | None, typer.Option(min=0, help="Seconds within which it must have begun.")] = None,
    execution_limit: Annotated[float | None, typer.Option(min=1, help="Seconds from first claim to end.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key again makes no second task.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="A label, NAME=VALUE; may be repeated.")] = None,
    capability: Annotated[list[str] | None, typer.Option(help="What its worker must be able to do.")] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="Kept with the task for people.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it fails.")] = False,
    wait_timeout: Annotated[float | None, typer.Option(min=0, help="Wait no longer, in seconds.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Submit one task: perdure submit email.send '{"to": "a@b.org"}'."""
    from perdure.cli.session import on_store
    from perdure.engine.requests import TaskRequest

    request = TaskRequest(
        kind=kind,
        payload=_json(_content(payload), "JSON"),
        queue=queue,
        priority=priority,
        delay=delay,
        run_at=_instant(run_at),
        max_attempts=max_attempts,
        timeout=timeout,
        ttl=ttl,
        execution_limit=execution_limit,
        idempotency_key=idempotency_key,
        labels=dict(map(_label, label)) if label else None,
        capabilities=capability,
        metadata=_json(metadata, "--metadata") if metadata is not None else None,
    )
    submitted = on_store(store, lambda session: _submit(session, request), create=True)
    if not (wait and json):
        _tell(submitted, json)
    if wait:
        from perdure.cli.task_wait import wait_for

        raise typer.Exit(wait_for(store, [submitted.id], timeout=wait_timeout, any_of=False, as_json=json))


async def _submit(session: "Session", request: "TaskRequest") -> "Submitted":
    from perdure.errors import PerdureError

    [answer] = await session.operations.submit([request], session.principal)
    if isinstance(answer, PerdureError):
        raise answer
    return answer


def _tell(submitted: "Submitted", as_json: bool) -> None:
    from perdure.cli.output import write_json, write_note

    if as_json:
        write_json(submitted)
    else:
        sys.stdout.write(submitted.id + "\n")
        if submitted.replayed:
            write_note("this idempotency key was used for the same request: the task existed before")


def _content(payload: str) -> str:
    if payload == "-":
        return sys.stdin.read()
    if payload.startswith("@"):
        path = Path(payload[1:])
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Malformed(f"the payload file {path} cannot be read: {error}", field="payload") from None
    return payload


def _json(text: str, what: str) -> Any:
    from perdure.jobfile.json_text import parse_json

    return parse_json(what, text).value


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Malformed(f"--run-at {text!r} is not a time like 2026-12-01T08:00:00Z", field="run_at") from None
    if moment.tzinfo is None:
        raise Malformed(f"--run-at {text!r} has no time zone; add Z or +01:00", field="run_at")
    return moment


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise Malformed(f"--label {text!r} is not NAME=VALUE", field="labels")
    return name, value
