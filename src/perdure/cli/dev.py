"""`perdure dev [MODULE:APP]`: gateway, worker and duties in one process, started afresh when the source changes."""

from typing import Annotated

import typer

from perdure.cli.options import JsonLogOption, StoreOption
from perdure.cli.serve import ListenOption
from perdure.cli.worker import ConcurrencyOption


def dev(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:APP]", help="The app; the built-in kinds alone without.", show_default=False),
    ] = None,
    concurrency: ConcurrencyOption = None,
    listen: ListenOption = None,
    reload: Annotated[bool, typer.Option(help="Start afresh when a source file changes.")] = True,
    store: StoreOption = None,
    json: JsonLogOption = False,
) -> None:
    """Work on an app: serve it and run its tasks here, and start afresh when its source changes."""
    from perdure.cli.reload import serve

    raise typer.Exit(serve(target, concurrency, store, listen, reload=reload, json_log=json))
