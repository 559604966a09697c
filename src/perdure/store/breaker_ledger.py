"""The part of the ledger that turns breakers by hand. What turns them else is how attempts end, in `settle`."""

from typing import Protocol

from perdure.domain.breaker import BreakerTurn


class BreakerLedger(Protocol):
    """Each call is one transaction, and holds for the next claim of any process."""

    async def trip_breaker(self, organization: str, kind: str, open_us: int, actor: str) -> BreakerTurn:
        """Open the breaker of a kind for so long, whatever state it is in. Then it lets probes through."""

    async def reset_breaker(self, organization: str, kind: str, actor: str) -> BreakerTurn:
        """Close the breaker of a kind, whatever state it is in. A new count begins, of attempts that begin since."""
