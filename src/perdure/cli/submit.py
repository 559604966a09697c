"""`perdure submit KIND JSON`: one task."""

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from perdure.cli.json_options import METADATA, PAYLOAD, RETRY, UNIQUE, metadata_of, retry_of, unique_of, value_of
from perdure.cli.labels import label_pairs
from perdure.cli.options import JsonOption, StoreOption, WaitTimeoutOption, check_waits, duration
from perdure.errors import Malformed

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.engine.requests import TaskRequest
    from perdure.store.ledger import Submitted

Kind = Annotated[str, typer.Argument(metavar="KIND", help="The kind of the task.", show_default=False)]
Payload = Annotated[
    str | None,
    typer.Argument(
        metavar="[JSON]",
        help="The payload; @FILE reads a file, - standard input. Without: {} where the kind takes fields, else null.",
        show_default=False,
    ),
]
Queue = Annotated[str | None, typer.Option(help="The queue.")]
Priority = Annotated[int | None, typer.Option(min=0, max=9, help="9 is most urgent; 4 if not said.")]
Delay = Annotated[
    float | None,
    typer.Option(parser=duration, metavar="DURATION", help="How long until it may run: seconds, or 90s, 5m, 2h."),
]
RunAt = Annotated[str | None, typer.Option(help="When it may run: 2026-12-01T08:00:00Z.")]
MaxAttempts = Annotated[int | None, typer.Option(min=1, help="How often its handler may fail.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        parser=duration, metavar="DURATION", help="How long one attempt may take; for the wait: --wait-timeout."
    ),
]
Ttl = Annotated[
    float | None, typer.Option(parser=duration, metavar="DURATION", help="Within what time it must have begun.")
]
ExecutionLimit = Annotated[
    float | None, typer.Option(parser=duration, metavar="DURATION", help="How long from its first claim to its end.")
]
RetrySaid = Annotated[
    str | None,
    typer.Option(
        "--retry",
        metavar="JSON",
        help=f"How its failures are retried: {RETRY.shown}.",
    ),
]
Lease = Annotated[
    float | None, typer.Option(parser=duration, metavar="DURATION", help="How long a silent worker keeps it.")
]
MaxLosses = Annotated[int | None, typer.Option(min=1, help="How many workers may be lost with it.")]
OnLossSaid = Annotated[
    str | None, typer.Option("--on-loss", help="What the loss of a worker costs: retry, count or fail.")
]
IdempotencyKey = Annotated[str | None, typer.Option(help="The same key again makes no second task.")]
UniqueSaid = Annotated[
    str | None,
    typer.Option(
        "--unique",
        metavar="JSON",
        help=f"One of several is enough: {UNIQUE.shown}; without: as the kind says.",
    ),
]
UniqueKey = Annotated[str | None, typer.Option(help="What stands for the fields by which it is unique.")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="A label, NAME=VALUE; may be repeated.")]
Capabilities = Annotated[list[str] | None, typer.Option("--capability", help="What its worker must be able to do.")]
Metadata = Annotated[str | None, typer.Option(metavar="JSON", help=f"Kept with the task for people: {METADATA.shown}.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it fails.")]

NOT_SAID: Any = object()
"""Stands for the payload of a command line without one."""


def submit(
    kind: Kind,
    payload: Payload = None,
    queue: Queue = None,
    priority: Priority = None,
    delay: Delay = None,
    run_at: RunAt = None,
    max_attempts: MaxAttempts = None,
    retry: RetrySaid = None,
    timeout: Timeout = None,
    ttl: Ttl = None,
    execution_limit: ExecutionLimit = None,
    lease: Lease = None,
    max_losses: MaxLosses = None,
    on_loss: OnLossSaid = None,
    idempotency_key: IdempotencyKey = None,
    unique: UniqueSaid = None,
    unique_key: UniqueKey = None,
    labels: Labels = None,
    capabilities: Capabilities = None,
    metadata: Metadata = None,
    wait: Wait = False,
    wait_timeout: WaitTimeoutOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Submit one task: perdure submit email.send '{"to": "a@b.org"}'."""
    check_waits(wait, wait_timeout)
    from perdure.engine.requests import TaskRequest

    where: dict[str, Any] = {"queue": queue, "priority": priority, "capabilities": capabilities}
    when: dict[str, Any] = {"delay": delay, "run_at": _instant(run_at), "ttl": ttl}
    how: dict[str, Any] = {"max_attempts": max_attempts, "timeout": timeout, "execution_limit": execution_limit}
    lost: dict[str, Any] = {"retry": retry_of(retry), "lease": lease, "max_losses": max_losses, "on_loss": on_loss}
    known: dict[str, Any] = {"idempotency_key": idempotency_key, "unique": unique_of(unique), "unique_key": unique_key}
    about: dict[str, Any] = {"labels": _labels(labels), "metadata": metadata_of(metadata)}
    value = NOT_SAID if payload is None else value_of(_content(payload), PAYLOAD)
    request = TaskRequest(kind=kind, payload=value, **where, **when, **how, **lost, **known, **about)
    submitted = _submitted(request, store, json, wait)
    if wait:
        _wait_for(submitted.id, store, wait_timeout, json)


def _wait_for(task_id: str, store: str | None, timeout: float | None, as_json: bool) -> NoReturn:
    from perdure.cli.task_wait import wait_for
    from perdure.errors import PerdureError

    try:
        code = wait_for(store, [task_id], timeout=timeout, any_of=False, as_json=as_json)
    except PerdureError as error:
        error.fields.setdefault("task_id", task_id)  # With --json nothing else has told it.
        raise
    raise typer.Exit(code)


def _submitted(request: "TaskRequest", store: str | None, as_json: bool, wait: bool) -> "Submitted":
    """Submit and tell; one JSON document is enough, so that a wait tells all there is."""
    from perdure.cli.session import on_store

    def tell(submitted: "Submitted") -> None:
        if not (wait and as_json):
            _tell(submitted, as_json)

    note = not wait and not as_json
    return on_store(store, lambda session: _submit(session, request, tell, note=note), create=True, quiet=as_json)


async def _submit(
    session: "Session", request: "TaskRequest", tell: "Callable[[Submitted], None]", *, note: bool
) -> "Submitted":
    """Submit and `tell` at once; what is noted then may fail, and the task is there."""
    from perdure.cli.beside import beside_the_work
    from perdure.cli.unserved import Waiting, note_unserved
    from perdure.domain.states import ENDED
    from perdure.errors import PerdureError

    if request.payload is NOT_SAID:
        request.payload = {} if await _takes_fields(session, request.kind) else None
    [answer] = await session.operations.submit([request], session.principal)
    if isinstance(answer, PerdureError):
        raise answer
    submitted = answer._replace(outcome=answer.told())
    tell(submitted)
    if note and answer.state is not None and answer.state not in ENDED:
        with beside_the_work("how it stands was not looked up"):
            view = await session.views.task(session.organization, answer.id)
            await note_unserved(session, [] if view is None else [Waiting(view.kind, view.queue)])
    return submitted


async def _takes_fields(session: "Session", kind: str) -> bool:
    """Whether the payload of a kind has to be an object, as far as the store knows the kind."""
    for known in await session.operations.kinds(session.principal):
        if known.name == kind:
            return known.schema is not None and known.schema.get("type") == "object"
    return False


def _tell(submitted: "Submitted", as_json: bool) -> None:
    from perdure.cli.output import write_id, write_json, write_note

    if as_json:
        write_json(submitted)
    else:
        write_id(submitted.id)
        if submitted.replayed:
            gone = " and has been removed since" if submitted.state is None else ""
            write_note(f"this idempotency key was used for the same request: the task existed before{gone}")
        elif submitted.outcome != "created":
            write_note(_OUTCOMES[submitted.outcome])


def _content(payload: str) -> str:
    if payload == "-":
        return sys.stdin.read()
    if payload.startswith("@"):
        path = Path(payload[1:])
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise Malformed(f"the payload file {path} cannot be read: {error.strerror}", field="payload") from None
        except UnicodeDecodeError as error:
            raise Malformed(f"the payload file {path} is not UTF-8 text: {error}", field="payload") from None
    return payload


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


_OUTCOMES = {
    "existing": "another task holds its key and is the answer: nothing was stored",
    "replaced": "the task that held its key is cancelled",
    "debounced": "the task that held its key has this payload now, and waits on",
}
"""What a submit of a unique task may have done instead of only making one."""


def _labels(texts: list[str] | None) -> dict[str, str] | None:
    return dict(label_pairs(texts)) or None
