"""`perdure pauses`: everything that is stopped, since when and by whom."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.store.flow_views import PauseView


def pauses(store: StoreOption = None, json: JsonOption = False) -> None:
    """List what is stopped, since when and by whom: what is paused, and breakers that are not closed."""
    from perdure.cli.output import shown_instant, write_json, write_table
    from perdure.cli.session import on_store

    async def read(session: "Session") -> "Sequence[PauseView]":
        return await session.operations.flow.pauses(session.principal)

    found = on_store(store, read)
    if json:
        write_json({"pauses": list(found)})
        return
    write_table(
        ("WHAT", "NAME", "STATE", "SINCE", "BY", "UNTIL"),
        [
            (
                each.type,
                each.name,
                each.state.replace("_", " "),
                shown_instant(each.since_us),
                each.actor,
                shown_instant(each.until_us),
            )
            for each in found
        ],
        "nothing is stopped",
    )
