"""`perdure queue ...`: see what is in queues, choose their policy, pause, resume and empty them."""

import sys
from typing import TYPE_CHECKING

import typer

from perdure.cli.options import JsonOption, QueueName, StoreOption, YesOption
from perdure.cli.policies import (
    Changes,
    Concurrency,
    EtagOption,
    Per,
    Rate,
    set_limits,
    set_paused,
    set_policy,
    show_policy,
)

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.store.views import QueueView

app = typer.Typer(
    help="Queues: list, show, set, limit, pause, resume, purge.", no_args_is_help=True, rich_markup_mode=None
)

SHOWN_STATES = ("pending", "queued", "leased", "running", "retrying", "cancelling")


@app.command("list")
def list_queues(store: StoreOption = None, json: JsonOption = False) -> None:
    """List queues with what is in them."""
    from perdure.cli.output import shown_instant, write_json, write_table
    from perdure.cli.session import on_store
    from perdure.cli.unserved import note_mistyped_kinds

    async def read(session: "Session") -> "list[QueueView]":
        queues = await session.views.queues(session.organization)
        if not json:
            await note_mistyped_kinds(session, {kind for each in queues for kind in each.missing_kinds})
        return queues

    queues = on_store(store, read)
    if json:
        write_json({"queues": queues})
        return
    write_table(
        (
            "QUEUE",
            "PAUSED",
            "LIMITS",
            *(state.upper() for state in SHOWN_STATES),
            "OLDEST QUEUED",
            "KINDS WITHOUT WORKER",
        ),
        [
            (
                each.name,
                "yes" if each.paused else "no",
                _limits(each),
                *(each.counts.get(state, 0) for state in SHOWN_STATES),
                shown_instant(each.oldest_queued_us),
                ", ".join(each.missing_kinds) or "-",
            )
            for each in queues
        ],
        "no queues",
    )


@app.command("show")
def show(queue: QueueName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show the policy of a queue."""
    show_policy("queue", queue, store, json)


@app.command("set")
def set_(
    queue: QueueName, changes: Changes, etag: EtagOption = None, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Change the policy of a queue: paused=true, dead_letters=false, depth=1000, depth=none, concurrency=20."""
    set_policy("queue", queue, changes, etag, store, json)


@app.command("limit")
def limit(
    queue: QueueName,
    concurrency: Concurrency = None,
    rate: Rate = None,
    per: Per = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Limit how many tasks of a queue are held at once and how many start in a time; without options, show it."""
    set_limits("queue", queue, {"concurrency": concurrency, "rate": rate, "per": per}, store, json)


@app.command("pause")
def pause(queue: QueueName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let nothing of a queue begin; what runs goes on, what is submitted waits."""
    set_paused("queue", queue, True, store, json)


@app.command("resume")
def resume(queue: QueueName, store: StoreOption = None, json: JsonOption = False) -> None:
    """Let the tasks of a paused queue begin again."""
    set_paused("queue", queue, False, store, json)


@app.command("purge")
def purge(queue: QueueName, yes: YesOption = False, store: StoreOption = None, json: JsonOption = False) -> None:
    """Cancel everything that waits in a queue; what runs goes on."""
    from perdure.cli.confirm import confirm
    from perdure.cli.output import counted, write_json
    from perdure.cli.session import on_store

    confirm(f"cancel everything that waits in queue {queue}?", yes)

    async def empty(session: "Session") -> int:
        return await session.operations.purge_queue(queue, session.principal)

    cancelled = on_store(store, empty)
    if json:
        write_json({"queue": queue, "cancelled": cancelled})
    else:
        verb = "is" if cancelled == 1 else "are"
        sys.stdout.write(f"{counted(cancelled, 'task')} of queue {queue} {verb} cancelled\n")


def _limits(queue: "QueueView") -> str:
    said = []
    if queue.depth is not None:
        said.append(f"{queue.depth} waiting")
    if queue.concurrency is not None:
        said.append(f"{queue.concurrency} at once")
    if queue.rate is not None:
        said.append(f"{queue.rate} in {queue.per or 1:g} s")
    return ", ".join(said) or "-"
