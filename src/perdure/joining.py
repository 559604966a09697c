"""Waiting for a thread's end without keeping an event loop from its work."""

import asyncio
import threading


async def join(thread: threading.Thread, seconds: float | None = None) -> None:
    """Return when the thread has ended, or after `seconds`.

    While the interpreter exits no pool takes work any more; then it waits on the spot, where nothing else is to run.
    """
    if not thread.is_alive():
        return
    try:
        ended = asyncio.get_running_loop().run_in_executor(None, thread.join, seconds)
    except RuntimeError:
        thread.join(seconds)
        return
    await ended
