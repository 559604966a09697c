"""`perdure worker pause|resume|drain|revoke ID`: what operators order a worker that runs."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from perdure.cli.session import Session

WorkerId = Annotated[str, typer.Argument(metavar="ID", help="The worker's id, as `perdure worker list` shows it.")]

TOLD = {
    "pause": "shall claim nothing until it is resumed",
    "work": "shall work",
    "drain": "shall finish what it has, hand back the rest, and end",
    "revoke": "is put out: its tasks run elsewhere, and nothing it still writes is taken",
}


def pause(worker: WorkerId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let a worker claim nothing more; what it holds goes on."""
    _order(worker, "pause", store, json)


def resume(worker: WorkerId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let a paused worker claim again."""
    _order(worker, "work", store, json)


def drain(worker: WorkerId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let a worker finish what it has within its grace, hand back the rest, and end."""
    _order(worker, "drain", store, json)


def revoke(worker: WorkerId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Put a worker out at once: its tasks run elsewhere at no cost, and nothing it still writes is taken."""
    _order(worker, "revoke", store, json)


def add_to(app: typer.Typer) -> None:
    """Make the orders commands of a group."""
    for command in (pause, resume, drain, revoke):
        app.command()(command)


def _order(worker: str, order: str, store: str | None, json: bool) -> None:
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.store.ledger import WorkerOrder

    async def give(session: "Session") -> None:
        await session.operations.order_worker(worker, WorkerOrder(order), session.principal)

    on_store(store, give)
    if json:
        write_json({"worker": worker, "order": order})
    else:
        sys.stdout.write(f"worker {worker} {TOLD[order]}\n")
