"""The protocol of hints: how those who wait learn that something may have changed.

Losing all of them costs latency only: whoever waits also looks by itself, now and then.
"""

from enum import Flag, auto
from typing import Protocol


class Topic(Flag):
    """What may have changed."""

    READY = auto()
    """Tasks became claimable."""
    ENDED = auto()
    """Tasks or jobs ended."""
    CONTROL = auto()
    """A cancel, a pause or an order to a worker."""
    DUE = auto()
    """Tasks wait for a time that was not known."""
    FOLLOW = auto()
    """Ends are to be carried on to what hangs on them, or a job shall stop."""
    ANY = READY | ENDED | CONTROL | DUE | FOLLOW


class Subscription(Protocol):
    """One waiter. Hints that arrive while it is not waiting are kept (as one)."""

    async def wait(self, timeout: float) -> Topic:
        """The topics hinted at since the last call; an empty flag after `timeout` seconds without any."""

    def close(self) -> None:
        """Wait no more."""


class Wakeups(Protocol):
    """Hints within this process, and from other processes as the store is able to."""

    def subscribe(self, topics: Topic) -> Subscription:
        """A waiter for some topics, on the running event loop."""

    def announce(self, topics: Topic) -> None:
        """Wake this process's waiters. Callable from any thread."""
