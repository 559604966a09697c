"""Waiting for a claim that may take long, unless the worker shall end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Leaving:
    """Whether the worker shall end. Belongs to its event loop; one call at a time waits beside it.

    The call runs in the task that waits: what it brings is at hand a few turns of the loop sooner.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: asyncio.Timeout | None = None

    def set(self) -> None:
        """It shall."""
        self._is_set = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def unless_set(self, call: Coroutine[Any, Any, T]) -> T | None:
        """The result of `call`; `None` when the worker shall end before, and the call is cancelled then."""
        if self._is_set:
            call.close()
            return None
        try:
            async with asyncio.timeout(None) as self._waiting:
                return await call
        except TimeoutError:
            if self._waiting is not None and self._waiting.expired():
                return None
            raise
        finally:
            self._waiting = None
