"""From code without `await` into code with it: one thread with an event loop, started on first use.

A forked child has none of its parent's threads, so it gets a portal thread of its own.
"""

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from perdure import ambient
from perdure.errors import Misuse

R = TypeVar("R")

CLOSE_SECONDS = 10.0
"""How long the end of the process waits for the portal to let go of the store."""


class Portal:
    """Runs coroutines for any thread that is not running an event loop itself."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._close = close
        self._threads: dict[int, _LoopThread] = {}

    def call(self, function: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any) -> R:
        """Run `function(*args, **kwargs)` on the portal's loop, wait for it and return or raise what it does."""
        refuse_inside_loop()
        return self._thread().run(function(*args, **kwargs))

    def close(self) -> None:
        """Close what the portal's loop has open and end its thread; a later call starts another."""
        refuse_inside_loop()
        thread = self._threads.pop(ambient.process_id(), None)
        if thread is not None:
            thread.stop(self._close)

    def _thread(self) -> "_LoopThread":
        here = ambient.process_id()
        thread = self._threads.get(here)
        if thread is None:
            thread = self._threads.setdefault(here, _LoopThread(self._close))
        thread.start_once()
        return thread


class _LoopThread:
    """One thread and its loop, in one process."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._lock = threading.Lock()
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start_once(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._serve, name="perdure-portal", daemon=True)
            self._thread.start()
            atexit.register(self.stop, self._close)

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Close in the loop, then end it. A forked child's copy of this has no thread: nothing to do there."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        closing = asyncio.run_coroutine_threadsafe(close(), loop)
        try:
            closing.result(CLOSE_SECONDS)
        except concurrent.futures.TimeoutError:
            pass
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLOSE_SECONDS)
            atexit.unregister(self.stop)

    def _serve(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._cancel_what_is_left()
        finally:
            self._loop.close()

    def _cancel_what_is_left(self) -> None:
        assert self._loop is not None
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


def refuse_inside_loop() -> None:
    """Raise `Misuse` in a thread whose event loop runs: waiting here would stop everything else on that loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise Misuse(
        "app.sync was called inside a running event loop, which it would block: use the same method of the app itself"
        " with await"
    )
