"""Writing inside a transaction of the caller's own, through its connection."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perdure.domain.attempt import Hold
from perdure.domain.settlement import Receipt
from perdure.domain.task import Task
from perdure.errors import PerdureError
from perdure.store.ledger import Submitted
from perdure.store.postgres.caller_connection import CallerConnections, awaited_connection, driver_connection
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import Connector
from perdure.store.postgres.faults import DATA_FAULTS, translate
from perdure.store.postgres.lending import AwaitedConnection, LentConnection, lend
from perdure.store.postgres.lifeline import RETRIES_MAX
from perdure.store.postgres.submission import Collided, submit
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.receipts import write_receipt

T = TypeVar("T")


class PostgresCaller:
    """Meets `store.caller.CallerTransactions`. `watch` is told the number of each transaction that has submitted."""

    def __init__(
        self, connector: Connector, clock: StoreClock, watch: Callable[[int], None] = lambda number: None
    ) -> None:
        self._watch = watch
        self._within = CallerConnections(connector, clock).within
        self._serializable = connector.serializable
        self._place = connector.place

    def submit(self, connection: Any, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Store tasks that exist exactly if the caller's transaction commits.

        What is refused leaves the caller's transaction as it was. Who uses a key that another transaction is just
        using waits for that one. Raises `StoreBusy` when others were first again and again.
        """
        tx = self._within(connection)
        collisions = 0
        while True:
            tx.run("caller_savepoint")
            try:
                answers = submit(tx, tasks, Lanes(), pending=True)
            except Collided as error:
                # Another transaction was first. What it has written is seen now, unless this one reads as of before.
                tx.run("caller_undo")
                collisions += 1
                if collisions > RETRIES_MAX:
                    raise translate(error, self._place) from error
                continue
            except DATA_FAULTS as error:
                tx.run("caller_undo")
                raise translate(error, self._place) from error
            tx.run("caller_release")
            self._watch(tx.value("caller_number"))
            return answers

    def settle(self, connection: Any, hold: Hold, receipt: Receipt) -> None:
        """Write the receipt of a live attempt."""
        tx = self._within(connection)
        written = write_receipt(tx, hold, receipt)
        if self._serializable:
            tx.run("receipt_touch", n=written)

    async def lend(self, connection: Any, act: Callable[[Any], T]) -> T:
        """Call `act` with the connection on a thread beside, and wait for it."""
        awaited = await awaited_connection(connection)
        if awaited is not None:
            return await lend(AwaitedConnection(awaited, asyncio.get_running_loop()), act)
        return await lend(LentConnection(driver_connection(connection)), act)
