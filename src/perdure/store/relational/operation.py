"""What a store's writer runs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from perdure.store.ledger import Taker
from perdure.store.wakeups import Topic


class Lone(NamedTuple):
    """What one item comes to where it is one statement that commits by itself."""

    statement: str
    """Its first value is whether it has written."""
    bindings: dict[str, Any]
    result: Any
    """The item's, once that was written."""
    topics: Topic


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
    lone: Callable[[Sequence[Any], int], Lone | None] | None = None
    """How items, of which there is one, are written at an instant by one statement; `None` for what needs more."""


class StandBy(NamedTuple):
    """An operation that travels with a commit of its event loop which brings work, if there is one soon."""

    operation: Operation
    item: Any
    room: int
    """How much the operation can take; its result is a list."""
    taker: Taker
    loop: asyncio.AbstractEventLoop


class Writer(Protocol):
    """Runs operations in transactions, many callers' items together."""

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let `items` travel in the next flush; one result per item comes back. On any event loop's thread."""

    def stand_by(self, stand_by: StandBy) -> Callable[[], None]:
        """Let an operation travel with the next commit that this event loop makes itself, if that brings work.

        Once at most. Returns what withdraws it. A writer whose loops commit nothing themselves does nothing.
        """
