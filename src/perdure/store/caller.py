"""The protocol of writing inside a transaction of the caller's own, on its thread and through its connection."""

from collections.abc import Sequence
from typing import Any, Protocol

from perdure.domain.attempt import Hold
from perdure.domain.settlement import Receipt
from perdure.domain.task import Task
from perdure.errors import PerdureError
from perdure.store.ledger import Submitted


class CallerTransactions(Protocol):
    """Both raise `Misuse` when the connection is on another database or outside a transaction; nothing is guessed."""

    def submit(self, connection: Any, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Store tasks as `pending`, due now or later; they exist exactly if the caller's transaction commits.

        Promotion queues them. Keys and depth as in `Ledger.submit`.
        """

    def settle(self, connection: Any, hold: Hold, receipt: Receipt) -> None:
        """Write the receipt of a live attempt; the caller's effects and the result are then one.

        Raises `LeaseLost` when the attempt is not live, is being cancelled, or is past its deadline. Roll back then.
        """
