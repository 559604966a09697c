"""Requests that are here more than once: a client that hears nothing sends its claim again, the first still under way.

The store gives both the same leases. So what one of them cannot deliver any more is given back only when no other may
deliver it, or has done so. In doubt nothing is given back: a lease that nobody has runs out, but one that is given back
under a worker that runs its task means that the task runs twice.
"""

from collections.abc import Sequence

from perdure.domain.attempt import Lease
from perdure.gateway.claim_line import Wanted

ANSWERED_MAX = 10_000
"""How many requests are remembered that were answered with leases, besides those that are here."""


class _Here:
    """A request that is here."""

    __slots__ = ("answered", "claims", "undelivered")

    def __init__(self, answered: bool) -> None:
        self.answered = answered
        self.claims = 0
        self.undelivered: list[Lease] = []


class Repeats:
    """What is known of the requests that are here, or were. Belongs to one event loop."""

    def __init__(self) -> None:
        self._here: dict[tuple[str, str], _Here] = {}
        self._answered: dict[tuple[str, str], None] = {}

    def enter(self, wanted: Wanted) -> None:
        """A claim is here until it leaves: until then it may get leases, and may be answered."""
        key = wanted.request
        here = self._here.get(key)
        if here is None:
            here = self._here[key] = _Here(key in self._answered)
        here.claims += 1

    def answer(self, wanted: Wanted) -> None:
        """A claim that is here is answered with leases."""
        key = wanted.request
        self._here[key].answered = True
        self._answered.pop(key, None)
        while len(self._answered) >= ANSWERED_MAX:
            self._answered.pop(next(iter(self._answered)))
        self._answered[key] = None

    def keep(self, wanted: Wanted, leases: Sequence[Lease]) -> None:
        """A claim that is here cannot deliver these. Another one of the same request may."""
        known = self._here[wanted.request].undelivered
        holds = {lease.hold for lease in known}
        known += [lease for lease in leases if lease.hold not in holds]

    def undelivered(self, wanted: Wanted) -> bool:
        """Whether a claim of the same request got leases that it could not deliver."""
        return bool(self._here[wanted.request].undelivered)

    def leave(self, wanted: Wanted) -> list[Lease]:
        """A claim leaves. Returns what is to be given back: nothing unless it is the last of a request that was never
        answered with leases.
        """
        key = wanted.request
        here = self._here[key]
        here.claims -= 1
        if here.claims:
            return []
        del self._here[key]
        return [] if here.answered else here.undelivered
