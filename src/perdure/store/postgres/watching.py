"""Transactions of callers that have submitted something and are open: what they submit is announced once they end.

Nobody is told of the commit of a transaction that is not the store's own, and a hint inside of it would make all such
commits of the server wait for each other. So whoever lent itself to it asks now and then whether it is over: soon at
first, and the longer it lasts the more rarely.
"""

import threading
from collections.abc import Callable, Collection

LOOK_FIRST_US = 20_000
LOOK_LAST_US = 500_000
LOOK_SHARE = 10
"""A transaction that has been open for so many times this long is looked at again after this long."""
OPEN_MAX = 1_000
"""So many are watched; what older ones submit is found by looking now and then."""


class Watches:
    """The open transactions, by the server's numbers. Added from any thread."""

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._monotonic_us = monotonic_us
        self._guard = threading.Lock()
        self._open: dict[int, tuple[int, int]] = {}
        """Since when each is watched, and when it is looked at next."""

    def add(self, number: int) -> None:
        """Watch a transaction."""
        with self._guard:
            now_us = self._monotonic_us()
            self._open[number] = (now_us, now_us + LOOK_FIRST_US)
            while len(self._open) > OPEN_MAX:
                del self._open[next(iter(self._open))]

    @property
    def due_us(self) -> int | None:
        """When one is to be looked at, if any is open."""
        with self._guard:
            return min((look_us for _, look_us in self._open.values()), default=None)

    def due(self, now_us: int) -> list[int]:
        """Those that are to be looked at now."""
        with self._guard:
            return [number for number, (_, look_us) in self._open.items() if look_us <= now_us]

    def open(self) -> list[int]:
        """All of them."""
        with self._guard:
            return list(self._open)

    def looked(self, asked: Collection[int], ended: Collection[int]) -> bool:
        """Note what was seen of those that were asked for; whether any has ended."""
        with self._guard:
            now_us = self._monotonic_us()
            for number in asked:
                since_us, _ = self._open.pop(number, (now_us, 0))
                if number not in ended:
                    wait_us = min(max(LOOK_FIRST_US, (now_us - since_us) // LOOK_SHARE), LOOK_LAST_US)
                    self._open[number] = (since_us, now_us + wait_us)
        return bool(ended)
