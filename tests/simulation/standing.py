"""Claims that stand by: they are part of another verb's commit, so the witness learns of them there."""

from collections.abc import Callable
from typing import Any

from perdure.domain.attempt import Lease
from perdure.store.ledger import ClaimRequest, Taker
from simulation.witness import Witness


class WithStanding:
    """A ledger behind the network. What stands by passes no network of its own: what befalls the commit befalls it."""

    def __init__(self, carried: Any, ledger: Any, witness: Witness) -> None:
        self._carried = carried
        self._ledger = ledger
        self._witness = witness

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._carried, verb)

    def stand_by(self, request: ClaimRequest, taker: Taker) -> Callable[[], None]:
        withdraw: Callable[[], None] = self._ledger.stand_by(request, _Witnessed(request, taker, self._witness))
        return withdraw


class _Witnessed:
    """Whoever stands by, seen by the witness."""

    def __init__(self, request: ClaimRequest, taker: Taker, witness: Witness) -> None:
        self._request = request
        self._taker = taker
        self._witness = witness
        self.subscription = taker.subscription
        self.begun = taker.begun
        self.passed_by = taker.passed_by
        self.failed = taker.failed

    def taken(self, leases: list[Lease]) -> None:
        self._witness.stood_by(self._request, leases)
        self._taker.taken(leases)
