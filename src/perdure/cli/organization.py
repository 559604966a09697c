"""`perdure organization ...`: the policy of the organization that one acts in."""

import typer

from perdure.cli.options import JsonOption, StoreOption
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

app = typer.Typer(
    help="The organization: show, set, limit, pause, resume.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("show")
def show(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show whether the organization is paused, and how many tasks may wait in it."""
    show_policy("organization", None, store, json)


@app.command("set")
def set_(changes: Changes, etag: EtagOption = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Change the organization's policy: paused=true, depth=100000, depth=none, concurrency=50, weight=2."""
    set_policy("organization", None, changes, etag, store, json)


@app.command("limit")
def limit(
    concurrency: Concurrency = None,
    rate: Rate = None,
    per: Per = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Limit how many tasks are held at once and how many start in a time, in all queues; without options, show it."""
    set_limits("organization", None, {"concurrency": concurrency, "rate": rate, "per": per}, store, json)


@app.command("pause")
def pause(store: StoreOption = None, json: JsonOption = False) -> None:
    """Let nothing of the organization begin; what runs goes on, what is submitted waits."""
    set_paused("organization", None, True, store, json)


@app.command("resume")
def resume(store: StoreOption = None, json: JsonOption = False) -> None:
    """Let the tasks of the paused organization begin again."""
    set_paused("organization", None, False, store, json)
