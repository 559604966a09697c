"""The store's time: the server's, taken once in each transaction.

A server that was started anew may be another machine with another clock, after a failover, and was away for a while
that nobody can tell. So each start is noted, and whoever first meets one that is not lets nothing be declared lost for
a lease. A step of the clock while the server runs is noticed by the processes that run duties.
"""

from perdure.ambient import Clock
from perdure.domain import limits
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.doubting import suspend_losses


class StoreClock:
    """Store time for this process. `clock` replaces the server's, for tests."""

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self._noted_us = 0

    def now_us(self, server_us: int) -> int:
        """Microseconds since 1970 UTC as the store judges, where the server's clock shows `server_us`."""
        return server_us if self._clock is None else self._clock.wall_us()

    def note(self, tx: Transaction, server_start_us: int) -> None:
        """Note which start of the server this is, within a transaction that writes."""
        if server_start_us == self._noted_us:
            return
        noted = tx.value("server_noted")
        if noted != str(server_start_us):
            tx.run("server_note", start_us=server_start_us, noted=noted)
            if noted is not None:
                suspend_losses(tx, tx.now_us + limits.LEASE_DEFAULT_US)
        tx.after_commit(lambda: self._remember(server_start_us))

    def _remember(self, server_start_us: int) -> None:
        self._noted_us = server_start_us
