"""Where a lease keeper runs: in a thread of its own, or on the worker's loop."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from perdure.joining import join
from perdure.worker.lease_keeper import LeaseKeeper

logger = logging.getLogger("perdure.worker")

JOIN_SECONDS = 5.0


class Keeping:
    """Starts a lease keeper and ends it."""

    def __init__(self, keeper: LeaseKeeper, in_thread: bool) -> None:
        self._keeper = keeper
        self._in_thread = in_thread
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep leases."""
        if self._in_thread:
            self._thread = threading.Thread(target=self._run, name="perdure-leases", daemon=True)
            self._thread.start()
        else:
            self._task = asyncio.get_running_loop().create_task(self._keeper.run(), name="perdure-leases")

    def _run(self) -> None:
        try:
            asyncio.run(self._keeper.run())
        except Exception:
            logger.exception("the lease keeper broke; please report it")

    async def stop(self) -> None:
        """End it, and wait for a call under way for a moment."""
        self._keeper.close()
        if self._thread is not None:
            await join(self._thread, JOIN_SECONDS)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def poster(loop: asyncio.AbstractEventLoop) -> Callable[..., None]:
    """Calls functions on `loop` from any thread; after its end it calls nothing."""

    def post(function: Callable[..., object], *arguments: Any) -> None:
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            if not loop.is_closed():
                raise

    return post
