"""Who waits within this process: hints reach them at once, whatever the store does for other processes."""

import asyncio
import threading
from collections.abc import Callable

from perdure.store.wakeups import Subscription, Topic

Waiter = asyncio.Future[None]


class HubSubscription:
    """One waiter, bound to the event loop that it was made on."""

    def __init__(self, hub: "Hub", topics: Topic, loop: asyncio.AbstractEventLoop) -> None:
        self._hub = hub
        self._topics = topics.value
        self._guard = threading.Lock()
        # Numbers instead of flags: with a thousand waiters the arithmetic of flags is what a commit would wait for.
        self._hinted = 0
        self._waiter: Waiter | None = None
        self.loop = loop

    def hint(self, topics: int) -> Waiter | None:
        """Note topics. From any thread. What is to be woken on `loop` is returned."""
        news = topics & self._topics
        if not news or (self._waiter is None and self._hinted | news == self._hinted):
            return None
        with self._guard:
            self._hinted |= news
            waiter, self._waiter = self._waiter, None
        return waiter

    async def wait(self, timeout: float) -> Topic:
        """The topics hinted at since the last call; an empty flag after `timeout` seconds without any."""
        with self._guard:
            waiter = None if self._hinted else self.loop.create_future()
            self._waiter = waiter
        if waiter is not None:
            timer = self.loop.call_later(timeout, _wake, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
        with self._guard:
            self._waiter = None
            hinted, self._hinted = self._hinted, 0
        return Topic(hinted)

    def close(self) -> None:
        """Wait no more."""
        self._hub.leave(self)


def _wake(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _wake_all(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        _wake(waiter)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Hub:
    """Who waits in this process, and for what."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._subscriptions: dict[HubSubscription, None] = {}
        self._on_first: Callable[[], None] | None = None

    def on_first(self, action: Callable[[], None]) -> None:
        """Call `action` whenever somebody begins to wait where nobody did."""
        self._on_first = action

    @property
    def watched(self) -> bool:
        """Whether anybody waits."""
        return bool(self._subscriptions)

    def subscribe(self, topics: Topic) -> HubSubscription:
        """A waiter for some topics, on the running event loop."""
        subscription = HubSubscription(self, topics, asyncio.get_running_loop())
        with self._guard:
            first = not self._subscriptions
            self._subscriptions[subscription] = None
        if first and self._on_first is not None:
            self._on_first()
        return subscription

    def leave(self, subscription: HubSubscription) -> None:
        """Forget a waiter. Harmless when forgotten already."""
        with self._guard:
            self._subscriptions.pop(subscription, None)

    def forget_all(self) -> None:
        """In a forked child: the parent's waiters are not here."""
        self._guard = threading.Lock()
        self._subscriptions = {}

    def announce(self, topics: Topic, sated: Subscription | None = None) -> None:
        """Wake this process's waiters, with one wake-up for each loop. Callable from any thread.

        One that is `sated` is not told of tasks that became claimable.
        """
        by_loop: dict[asyncio.AbstractEventLoop, list[Waiter]] = {}
        with self._guard:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            waiter = subscription.hint((topics if subscription is not sated else topics & ~Topic.READY).value)
            if waiter is not None:
                by_loop.setdefault(subscription.loop, []).append(waiter)
        here = _running_loop() if by_loop else None
        for loop, waiters in by_loop.items():
            if loop is here:
                _wake_all(waiters)
                continue
            try:
                loop.call_soon_threadsafe(_wake_all, waiters)
            except RuntimeError:
                self._forget_loop(loop)

    def _forget_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            for subscription in [each for each in self._subscriptions if each.loop is loop]:
                del self._subscriptions[subscription]
