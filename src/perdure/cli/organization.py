"""`perdure organization ...`: the policy of the organization that one acts in."""

import typer

from perdure.cli.options import JsonOption, StoreOption
from perdure.cli.policies import Changes, EtagOption, set_policy, show_policy

app = typer.Typer(help="The organization: show, set.", no_args_is_help=True, rich_markup_mode=None)


@app.command("show")
def show(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show whether the organization is paused, and how many tasks may wait in it."""
    show_policy("organization", None, store, json)


@app.command("set")
def set_(changes: Changes, etag: EtagOption = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Change the organization's policy: paused=true, depth=100000, depth=none."""
    set_policy("organization", None, changes, etag, store, json)
