"""Hints for those who wait at the gateway: one subscription of the store's, however many wait."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from perdure.store.wakeups import Subscription, Topic

LISTEN_SECONDS = 60.0
REST_SECONDS = 0.002
"""Between two rounds of waking: a stream of hints wakes everybody once for many."""


class Seen(NamedTuple):
    """How many hints of each sort there had been."""

    ready: int
    control: int


class Hints:
    """Counts hints, so that one that came between two requests is not lost. Belongs to one event loop."""

    def __init__(self, subscribe: Callable[[], Subscription], instance: str) -> None:
        self._subscribe = subscribe
        self._instance = instance
        self._ready = 0
        self._control = 0
        self._waiters: set[asyncio.Future[None]] = set()
        self._listener: asyncio.Task[None] | None = None

    @property
    def seen(self) -> Seen:
        """The hints so far."""
        return Seen(self._ready, self._control)

    def start(self) -> None:
        """Begin to listen. Harmless when it does already."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(self._subscribe()), name="perdure-gateway-hints")

    async def stop(self) -> None:
        """Listen no more; everybody who waits is woken."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            await asyncio.wait([listener])
        self._wake()

    async def next(self, after: Seen, topics: Topic, seconds: float) -> Seen:
        """The hints so far, as soon as there are more of `topics` than `after`, at the latest in `seconds`."""
        clock = asyncio.get_running_loop()
        until = clock.time() + seconds
        while not self._newer(after, topics) and self._listener is not None:
            left = until - clock.time()
            if left <= 0:
                break
            await self._wait(left)
        return self.seen

    def cursor(self, seen: Seen) -> str:
        """A text for `seen` that a client brings back."""
        return f"{self._instance}.{seen.ready}.{seen.control}"

    def read_cursor(self, text: str | None) -> Seen | None:
        """What a client has seen; `None` when that was told by another gateway, or is nothing."""
        instance, _, counts = (text or "").partition(".")
        ready, _, control = counts.partition(".")
        if instance != self._instance or not (
            ready.isascii() and ready.isdigit() and control.isascii() and control.isdigit()
        ):
            return None
        return Seen(int(ready), int(control))

    def _newer(self, after: Seen, topics: Topic) -> bool:
        return bool(
            (topics & Topic.READY and self._ready > after.ready)
            or (topics & Topic.CONTROL and self._control > after.control)
        )

    async def _wait(self, seconds: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter
        finally:
            self._waiters.discard(waiter)

    async def _listen(self, subscription: Subscription) -> None:
        try:
            while True:
                topics = await subscription.wait(LISTEN_SECONDS)
                if topics & Topic.READY:
                    self._ready += 1
                if topics & Topic.CONTROL:
                    self._control += 1
                if topics:
                    self._wake()
                    await asyncio.sleep(REST_SECONDS)
        finally:
            subscription.close()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
