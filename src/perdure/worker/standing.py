"""A worker that rests, as a store's commit sees it that brings work."""

from collections.abc import Callable

from perdure.ambient import Clock
from perdure.domain.attempt import Lease
from perdure.store.wakeups import Subscription

Stood = Callable[[list[Lease], int, int], None]


class Standing:
    """Meets `store.ledger.Taker`."""

    def __init__(self, subscription: Subscription, clock: Clock, stood: Stood) -> None:
        self.subscription = subscription
        self._clock = clock
        self._stood = stood
        """Called with leases, the instant before they began, and now; without any where that is not known."""
        self._begun_us = 0

    def begun(self) -> None:
        """A commit begins that may bring leases."""
        self._begun_us = self._clock.monotonic_us()

    def taken(self, leases: list[Lease]) -> None:
        """It has brought some."""
        self._stood(leases, self._begun_us, self._clock.monotonic_us())

    def passed_by(self) -> None:
        """It has brought none: the worker rests on."""

    def failed(self) -> None:
        """It may have: a claim asks for them again."""
        self._stood([], self._begun_us, self._clock.monotonic_us())
