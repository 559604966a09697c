"""The kind that does nothing for a while: recorded workflows are replayed with it, and tests wait with it."""

import asyncio
from typing import Annotated

import msgspec

SLEEP_KIND = "perdure.sleep"

SLEEP_MAX_SECONDS = 30 * 24 * 3600.0

Seconds = Annotated[float, msgspec.Meta(ge=0, le=SLEEP_MAX_SECONDS)]


async def sleep(seconds: Seconds) -> float:
    """Wait `seconds` on the event loop and return them. It stops at once when it is cancelled."""
    await asyncio.sleep(seconds)
    return seconds
