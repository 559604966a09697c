"""Documents of queues, kinds and the organization, as the command line shows and changes them."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.numerals import whole
from perdure.cli.options import duration
from perdure.domain.limits import SECOND_US
from perdure.errors import Malformed, PreconditionFailed

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.engine.definitions import Document
    from perdure.store.definitions import DefinitionType

CHANGE_TRIES = 10
_FRACTION = re.compile(r"[0-9]{1,12}\.[0-9]{1,6}")

Changes = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE...", help="What to change; the rest stays.", show_default=False)
]
EtagOption = Annotated[
    str | None,
    typer.Option("--etag", help="Only if it still says what `show` told with this ETAG.", show_default=False),
]


def _seconds_of(said: str | None) -> str | None:
    """A duration as the seconds that a policy says."""
    return None if said is None else f"{duration(said):.6f}".rstrip("0").rstrip(".")


Concurrency = Annotated[
    str | None, typer.Option(metavar="N|none", help="How many are held at once.", show_default=False)
]
Rate = Annotated[str | None, typer.Option(metavar="N|none", help="How many start in a time.", show_default=False)]
Per = Annotated[
    str | None,
    typer.Option(
        callback=_seconds_of, metavar="DURATION", help="In what time; 1 s if it is not said.", show_default=False
    ),
]


def set_limits(
    type: "DefinitionType",
    name: str | None,
    said: Mapping[str, str | None],
    store: str | None,
    as_json: bool,
) -> None:
    """Change limits; where none is said, show the policy. Raises `Malformed` and `Invalid`."""
    changes = dict(_change(f"{key}={value}") for key, value in said.items() if value is not None)
    if changes:
        from perdure.cli.beside import beside_the_work
        from perdure.cli.session import on_store

        async def change(session: "Session") -> None:
            wanted = session.organization if name is None else name
            if not as_json:
                await _note_unknown(session, type, wanted)
            await session.operations.flow.limit(type, wanted, changes, session.principal)
            with beside_the_work(f"the limits of {type} {wanted} are changed; what holds now was not looked up"):
                _write(type, wanted, await session.operations.definition(type, wanted, session.principal), as_json)

        on_store(store, change, create=True, quiet=as_json)
    else:
        show_policy(type, name, store, as_json)


def set_paused(type: "DefinitionType", name: str | None, paused: bool, store: str | None, as_json: bool) -> None:
    """Pause or resume a queue, a kind or the organization; a name that may be mistyped is noted."""
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store

    async def change(session: "Session") -> str:
        wanted = session.organization if name is None else name
        if not as_json:
            await _note_unknown(session, type, wanted)
        flow = session.operations.flow
        await (flow.pause if paused else flow.resume)(type, wanted, session.principal)
        return wanted

    changed = on_store(store, change, create=True, quiet=as_json)
    if as_json:
        write_json({type: changed, "paused": paused})
    else:
        sys.stdout.write(f"{type} {changed} is {'paused' if paused else 'running'}\n")


async def _note_unknown(session: "Session", type: "DefinitionType", name: str) -> None:
    from perdure.cli.output import write_note

    if not await _is_known(session, type, name):
        write_note(f"nothing is known of a {type} {name} yet: if the name is right, this holds once there is one")


async def _is_known(session: "Session", type: "DefinitionType", name: str) -> bool:
    """Whether a worker, a task or a document has told of it. A kind is known once it is declared or has a document."""
    if type == "kind":
        return name in {each.name for each in await session.operations.kinds(session.principal)}
    if type == "queue":
        served = await session.views.workers(
            session.organization, round(session.system.settings.worker_active * SECOND_US)
        )
        return name in {each.name for each in await session.views.queues(session.organization)} or any(
            name in each.queues for each in served
        )
    return True


def show_policy(type: "DefinitionType", name: str | None, store: str | None, as_json: bool) -> None:
    """Write a document; what it does not say is shown as the default that holds."""
    from perdure.cli.session import on_store

    async def read(session: "Session") -> "tuple[str, Document | None]":
        wanted = session.organization if name is None else name
        return wanted, await session.operations.definition(type, wanted, session.principal)

    wanted, document = on_store(store, read)
    _write(type, wanted, document, as_json)


def set_policy(
    type: "DefinitionType", name: str | None, said: Sequence[str], etag: str | None, store: str | None, as_json: bool
) -> None:
    """Change some of a document and leave the rest. Raises `Malformed`, `Invalid` and `PreconditionFailed`."""
    from perdure.cli.session import on_store

    changes = dict(map(_change, said))

    async def change(session: "Session") -> "tuple[str, Document]":
        wanted = session.organization if name is None else name
        if not as_json:
            await _note_unknown(session, type, wanted)
        return wanted, await change_policy(session, type, wanted, changes, etag)

    wanted, document = on_store(store, change, create=True, quiet=as_json)
    _write(type, wanted, document, as_json)


async def change_policy(
    session: "Session", type: "DefinitionType", name: str, changes: dict[str, Any], etag: str | None = None
) -> "Document":
    """Change some of a document and leave the rest. Raises `Invalid` and `PreconditionFailed`."""
    from perdure.engine.definitions import NONE

    operations = session.operations
    for tries_left in reversed(range(CHANGE_TRIES)):
        before = await operations.definition(type, name, session.principal)
        value = {**(before.value if before is not None else {}), **changes}
        expected = etag or (before.etag if before is not None else NONE)
        try:
            return await operations.put_definition(type, name, value, session.principal, expected)
        except PreconditionFailed:
            # Somebody else has changed it meanwhile: these changes go on top, unless a tag was asked for.
            if etag is not None or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def _change(said: str) -> tuple[str, Any]:
    """`depth=100`, `paused=true`, `depth=none`."""
    key, equals, text = said.partition("=")
    if not equals or not key:
        raise Malformed(f"{said!r} is no KEY=VALUE, as in paused=true or depth=1000", field="change")
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return key, words[text.lower()]
    count = whole(text)
    if count is not None and len(text) < 20:
        return key, count
    return key, float(text) if _FRACTION.fullmatch(text) else text


def _write(type: "DefinitionType", name: str, document: "Document | None", as_json: bool) -> None:
    from perdure.cli.output import write_facts, write_json

    value = {**_defaults(type), **(document.value if document is not None else {})}
    etag = document.etag if document is not None else None
    if as_json:
        write_json({"type": type, "name": name, "etag": etag, "document": value})
        return
    write_facts([(type, name), *((key, _shown(each)) for key, each in sorted(value.items())), ("etag", etag or "none")])
    sys.stdout.flush()


def _defaults(type: "DefinitionType") -> dict[str, Any]:
    """What holds for what a document does not say."""
    from dataclasses import asdict

    from perdure.domain.policy import OrganizationPolicy, QueuePolicy

    if type == "kind":
        return {"paused": False}
    return asdict(QueuePolicy() if type == "queue" else OrganizationPolicy())


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
