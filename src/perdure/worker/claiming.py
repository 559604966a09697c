"""Waiting for a claim that may take long, unless the worker shall end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unless_set(event: asyncio.Event, call: Coroutine[Any, Any, T]) -> T | None:
    """The result of `call`; `None` when `event` is set before, and the call is cancelled then."""
    calling = asyncio.ensure_future(call)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((calling, waiting), return_when=asyncio.FIRST_COMPLETED)
        return calling.result() if calling.done() else None
    finally:
        for each in (calling, waiting):
            each.cancel()
        await asyncio.wait((calling, waiting))
