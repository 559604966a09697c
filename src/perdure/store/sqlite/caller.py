"""Writing inside a transaction of the caller's own, on its thread, through its connection."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perdure.domain.attempt import Hold
from perdure.domain.settlement import Receipt
from perdure.domain.task import Task
from perdure.errors import PerdureError
from perdure.store.ledger import Submitted
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.receipts import write_receipt
from perdure.store.relational.unique import moves_others
from perdure.store.sqlite.caller_connection import CallerConnections, writing
from perdure.store.sqlite.submission import submit

T = TypeVar("T")


class SqliteCaller:
    """Meets `store.caller.CallerTransactions`."""

    def __init__(self, callers: CallerConnections) -> None:
        self._within = callers.within
        self._working_tables = callers.working_tables

    def submit(self, connection: Any, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Store tasks that exist exactly if the caller's transaction commits."""
        tx = self._within(connection)
        with writing():
            if not any(moves_others(task.rare.options) for task in tasks):
                return submit(tx, tasks, Lanes(), pending=True)
            with self._working_tables(connection):
                return submit(tx, tasks, Lanes(), pending=True)

    def settle(self, connection: Any, hold: Hold, receipt: Receipt) -> None:
        """Write the receipt of a live attempt."""
        tx = self._within(connection)
        with writing():
            write_receipt(tx, hold, receipt)

    async def lend(self, connection: Any, act: Callable[[Any], T]) -> T:
        """Call `act` with the connection at once: it holds the write lock, and a file does not keep anybody waiting."""
        return act(connection)
