"""The protocol of writing inside a transaction of the caller's own, on its thread and through its connection."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from perdure.domain.attempt import Hold
from perdure.domain.settlement import Receipt
from perdure.domain.task import Task
from perdure.errors import PerdureError
from perdure.store.ledger import Submitted

T = TypeVar("T")


class CallerTransactions(Protocol):
    """`Misuse` when a connection is on another database, outside a transaction, or to be awaited; nothing is guessed.

    What the database reports about the caller's transaction is raised as the caller's driver raises it.
    """

    def submit(self, connection: Any, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Store tasks as `pending`, due now or later; they exist exactly if the caller's transaction commits.

        Promotion queues them. Keys and depth as in `Ledger.submit`.
        """

    def settle(self, connection: Any, hold: Hold, receipt: Receipt) -> None:
        """Write the receipt of a live attempt; the caller's effects and the result are then one.

        Raises `LeaseLost` when the attempt is not live, is being cancelled, or is past its deadline. Roll back then.
        """

    async def lend(self, connection: Any, act: Callable[[Any], T]) -> T:
        """Call `act` with what `submit` and `settle` take in the place of `connection`, and return what it returns.

        A connection may be one that has to be awaited, and statements may wait for the server or for locks: none of
        that holds the running event loop up. When this is cancelled, nothing runs on the connection any more.
        """
