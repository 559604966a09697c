"""Hints that something may have changed: at once within this process, and by a look at the file from other processes.

The look is `PRAGMA data_version` on the connection that writes, done by the writer's thread when it has nothing else to
do: that number changes when another connection has committed and never by own commits, so nobody is woken twice.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import apsw

from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.wakeups import Topic

_DATA_VERSION = STATEMENTS["transaction_data_version"]

LOOK_HOT_US = 5_000
LOOK_WARM_US = 20_000
LOOK_IDLE_US = 40_000
HOT_FOR_US = 5_000_000
WARM_FOR_US = 60_000_000
"""How often to look: right after a change, within a minute of one, and else. Each look costs about 50 us of a core."""


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

    def announce(self, topics: Topic) -> None:
        """Wake this process's waiters, with one wake-up for each loop. Callable from any thread."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Waiter]] = {}
        with self._guard:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            waiter = subscription.hint(topics.value)
            if waiter is not None:
                by_loop.setdefault(subscription.loop, []).append(waiter)
        for loop, waiters in by_loop.items():
            try:
                loop.call_soon_threadsafe(_wake_all, waiters)
            except RuntimeError:
                self._forget_loop(loop)

    def _forget_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            for subscription in [each for each in self._subscriptions if each.loop is loop]:
                del self._subscriptions[subscription]


class ForeignChanges:
    """Notices commits of other connections while somebody waits. Used by the writer's thread."""

    def __init__(self, hub: Hub, monotonic_us: Callable[[], int]) -> None:
        self._hub = hub
        self._monotonic_us = monotonic_us
        self._version: Any = None
        self._connection: apsw.Connection | None = None
        self._looked_us = 0
        self._changed_us = 0

    @property
    def watched(self) -> bool:
        """Whether anybody waits for what it may find."""
        return self._hub.watched

    def interval(self) -> float | None:
        """Seconds until the next look; `None` while nobody waits."""
        if not self._hub.watched:
            return None
        now_us = self._monotonic_us()
        wait_us = self._looked_us + self._pace_us(now_us) - now_us
        return wait_us / 1_000_000 if wait_us > 0 else 0.0

    def _pace_us(self, now_us: int) -> int:
        quiet_us = now_us - self._changed_us
        if quiet_us < HOT_FOR_US:
            return LOOK_HOT_US
        return LOOK_WARM_US if quiet_us < WARM_FOR_US else LOOK_IDLE_US

    def due(self) -> bool:
        """Whether it is time to look."""
        if not self._hub.watched:
            return False
        now_us = self._monotonic_us()
        return now_us >= self._looked_us + self._pace_us(now_us)

    def look(self, connection: apsw.Connection) -> None:
        """Announce what other connections changed since the last look."""
        self._looked_us = now_us = self._monotonic_us()
        try:
            ((version,),) = connection.execute(_DATA_VERSION)
        except apsw.Error:
            # It fails in the open at the next commit; waiters are told to look for themselves.
            version = -1
        known = self._version if connection is self._connection else None
        self._connection, self._version = connection, version
        if version != known:
            self._changed_us = now_us
            self._hub.announce(Topic.ANY)
