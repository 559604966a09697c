"""What a store's writer runs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Operation(NamedTuple):
    """Something that can be done to many items within one transaction.

    `apply` runs in the writer's thread and returns one result per item, in order. It may run again with other
    neighbours after a rollback, so what it changes outside of the transaction belongs into `tx.after_commit`. A
    `PerdureError` that it raises goes to the one call whose items cause it; what must not cost a call its other items
    is a result.
    """

    name: str
    rank: int
    """Its place within one flush: lower first. Settles go before claims."""
    apply: Callable[[Any, list[Any]], list[Any]]
    durable: bool = True
    """False: a power loss may undo it (claim, renew, heartbeat)."""
    max_items: int = 10_000
    """The most items that one flush takes, unless a single call has more."""


class Writer(Protocol):
    """Runs operations in transactions, many callers' items together."""

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let `items` travel in the next flush; one result per item comes back. On any event loop's thread."""
