"""`perdure serve [MODULE:APP]`: gateway, worker and duties as one process, or each in a process of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.options import GraceOption, JsonLogOption, StoreOption
from perdure.cli.worker import ConcurrencyOption, QueuesOption

if TYPE_CHECKING:
    from perdure.app import App
    from perdure.serving import Role

ListenOption = Annotated[
    str | None,
    typer.Option("--listen", envvar="PERDURE_LISTEN", help="Where the gateway listens, host:port.", show_default=False),
]
DEFAULT_ROLE = "all"


def serve(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:APP]", help="The app; the built-in kinds alone without.", show_default=False),
    ] = None,
    role: Annotated[str, typer.Option(help="all, gateway, worker or sweeper (the duties).")] = DEFAULT_ROLE,
    listen: ListenOption = None,
    concurrency: ConcurrencyOption = None,
    queue: QueuesOption = None,
    grace: GraceOption = None,
    attached: Annotated[bool, typer.Option("--attached", hidden=True)] = False,
    store: StoreOption = None,
    json: JsonLogOption = False,
) -> None:
    """Serve until SIGTERM or SIGINT; a second signal ends at once."""
    import asyncio

    from perdure.cli.logs import configure
    from perdure.cli.working import the_app

    chosen_role = chosen(role)
    app = the_app(target, store)
    configure(app.settings, as_json=json)
    said = {"concurrency": concurrency, "queues": tuple(queue or ()), "grace": grace}
    options = {name: value for name, value in said.items() if value not in (None, ())}
    asyncio.run(_serve(app, chosen_role, listen, options, attached=attached))


def chosen(role: str) -> "Role":
    """The role of that name. Raises `Malformed`."""
    from perdure.errors import Malformed
    from perdure.serving import ROLES

    for each in ROLES:
        if each == role:
            return each
    raise Malformed(f"there is no role {role!r}; they are {', '.join(ROLES)}", field="role")


async def _serve(app: "App", role: "Role", listen: str | None, options: Mapping[str, Any], *, attached: bool) -> None:
    import contextlib

    from perdure.app.running import signals_drain
    from perdure.cli.working import end_with_parent
    from perdure.gateway.access import check_listen, parse_listen
    from perdure.serving import Serving

    address = parse_listen(listen or app.settings.listen)
    if role in ("all", "gateway"):
        check_listen(address)
    serving = Serving(app, role, address, options=options)
    try:
        with signals_drain(serving.stop), end_with_parent(serving.stop) if attached else contextlib.nullcontext():
            await serving.run()
    finally:
        await app.close()
