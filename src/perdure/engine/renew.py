"""Renew leases, and read the cancels of what a worker holds."""

from collections.abc import Sequence

from perdure.domain import limits
from perdure.domain.attempt import Renewal
from perdure.store.ledger import Ledger, Renewed


class Renew:
    """Renews all leases of a caller in one write."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def __call__(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """One answer per renewal; `None` where the attempt is not live any more."""
        answers: list[Renewed | None] = []
        for start in range(0, len(renewals), limits.RENEW_MAX_ITEMS):
            answers += await self._ledger.renew(renewals[start : start + limits.RENEW_MAX_ITEMS])
        return answers
