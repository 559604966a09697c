"""`perdure worker MODULE:APP` runs a worker, `perdure worker list` shows them all."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from perdure.cli.options import GraceOption, JsonLogOption, JsonOption, StoreOption, duration

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.store.views import WorkerView

DEFAULT_COMMAND = "run"
SILENT_SECONDS = 30.0
"""Half as long again as the usual time between two signs of life: nothing was heard of it when something should be."""


class RunByDefault(TyperGroup):
    """`worker MODULE:APP` means `worker run MODULE:APP`: a module's name is never one of the commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in where it was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RunByDefault,
    help="Workers: `perdure worker MODULE:APP` runs one, `perdure worker list` shows all.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ConcurrencyOption = Annotated[int | None, typer.Option(min=1, help="How many tasks run at once.", show_default=False)]
QueuesOption = Annotated[list[str] | None, typer.Option("--queue", help="A queue to serve; may be repeated.")]


@app.command(DEFAULT_COMMAND)
def run(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:APP]", help="The app; the built-in kinds alone without.", show_default=False),
    ] = None,
    concurrency: ConcurrencyOption = None,
    queue: QueuesOption = None,
    prefetch: Annotated[
        int | None, typer.Option(min=0, help="How many more it holds ready; 0 for long tasks.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(help="The worker's name, for people.")] = None,
    grace: GraceOption = None,
    duties: Annotated[bool, typer.Option(help="Run the system's duties beside the worker.")] = True,
    attached: Annotated[bool, typer.Option("--attached", hidden=True)] = False,
    store: Annotated[
        str | None, typer.Option("--store", help="The store; default: the app's own.", show_default=False)
    ] = None,
    json: JsonLogOption = False,
) -> None:
    """Run a worker until SIGTERM or SIGINT; a second signal stops it at once."""
    from perdure.cli.working import WorkOptions, work

    chosen = {
        "concurrency": concurrency,
        "prefetch": prefetch,
        "queues": tuple(queue or ()),
        "name": name,
        "grace": grace,
    }
    raise typer.Exit(work(WorkOptions(target, store, chosen, duties=duties, attached=attached, json_log=json)))


ActiveSince = Annotated[
    float | None,
    typer.Option(
        parser=duration,
        metavar="DURATION",
        help="Seen no longer ago than that; the setting worker_active if it is not said.",
        show_default=False,
    ),
]


@app.command("list")
def list_workers(
    active_since: ActiveSince = None,
    everything: Annotated[bool, typer.Option("--all", help="Those that are gone too.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List workers that are alive."""
    from perdure.cli.output import counted, shown_instant, write_json, write_table
    from perdure.cli.session import on_store

    async def read(session: "Session") -> "list[WorkerView]":
        since = session.system.settings.worker_active if active_since is None else active_since
        active_us = None if everything else round(since * 1_000_000)
        return await session.views.workers(session.organization, active_us)

    workers = on_store(store, read)
    if json:
        write_json({"workers": workers})
        return
    write_table(
        ("ID", "NAME", "HOST", "PID", "STATE", "ORDER", "HOLDS", "MAY HOLD", "QUEUES", "KINDS", "SEEN"),
        [
            (
                each.id,
                each.name,
                each.host,
                each.pid,
                _state(each),
                _order(each),
                counted(each.leases, "task"),
                each.capacity,
                ", ".join(each.queues),
                ", ".join(each.kinds),
                shown_instant(each.seen_us),
            )
            for each in workers
        ],
        "no workers",
        below=("HOST", "PID", "ORDER", "QUEUES", "KINDS", "SEEN"),
    )


def _state(worker: "WorkerView") -> str:
    """Whether it is there, as far as it said so itself."""
    if worker.left_us is not None:
        return "left"
    if worker.silent is not None and worker.silent > SILENT_SECONDS:
        return f"silent for {int(worker.silent)} s"
    return "live" if worker.capacity else "draining"


def _order(worker: "WorkerView") -> str:
    """What it was ordered and by whom."""
    return worker.order if worker.ordered_by is None else f"{worker.order} by {worker.ordered_by}"
