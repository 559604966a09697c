"""What a worker asks of a store when it claims, and how a claim stands by for a commit."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from perdure.domain.attempt import Lease
from perdure.store.wakeups import Subscription


class ClaimRequest(NamedTuple):
    """What a worker may have now: at most one task for each of `leases`."""

    worker_id: str
    leases: Sequence[tuple[str, str]]
    """Id and token of each attempt to be made, chosen by the caller."""
    ageing_us: int = 0
    """A lane counts as one priority higher for each such time that its first task has waited; 0: never."""


class Taker(Protocol):
    """Who stands by. All is called on the event loop that was running when it began to."""

    @property
    def subscription(self) -> Subscription | None:
        """Where it hears of work else, if nobody else hears of work there."""

    def begun(self) -> None:
        """A commit begins that may take the claim along: no lease of it begins earlier."""

    def taken(self, leases: list[Lease]) -> None:
        """The commit has brought these, one at least. Nothing stands by any more."""

    def passed_by(self) -> None:
        """The commit has brought work, but none for this claim, which goes on standing by, behind others."""

    def failed(self) -> None:
        """Nobody knows whether the commit has leased anything. Nothing stands by any more."""


def nothing_stands_by() -> None:
    """What withdraws a claim where none stands by."""


class StandingClaims(Protocol):
    """Claims that wait for a commit."""

    def stand_by(self, request: ClaimRequest, taker: Taker) -> Callable[[], None]:
        """Let a claim travel with the next commit which this event loop makes itself and which brings work, if there
        is one: it spares the worker a hint, and a transaction. Returns what withdraws it.

        A claim that was not filled has taken all that its worker may have, so its subscription is not told then that
        tasks became claimable. A store may do nothing of this.
        """
