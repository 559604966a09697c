"""The kind that does nothing for a while: recorded workflows are replayed with it, and tests wait with it."""

import asyncio
from typing import Annotated

import msgspec

from perdure.builtin.effect_ledger import ledger_path, record

SLEEP_KIND = "perdure.sleep"

SLEEP_MAX_SECONDS = 30 * 24 * 3600.0

Seconds = Annotated[float, msgspec.Meta(ge=0, le=SLEEP_MAX_SECONDS)]


async def sleep(seconds: Seconds, name: str = "") -> float:
    """Wait `seconds` on the event loop and return them. It stops at once when it is cancelled.

    Where `PERDURE_EFFECT_LEDGER` names a file, start and end (or stop) are appended to it under `name`.
    """
    # No context is taken: a handler with one is given its parents' results, which costs a query for each task.
    ledger = ledger_path()
    if ledger is None:
        await asyncio.sleep(seconds)
        return seconds
    record(ledger, "start", name)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        record(ledger, "stop", name)
        raise
    record(ledger, "end", name)
    return seconds
