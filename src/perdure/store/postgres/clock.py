"""The store's time: the server's, taken once in each transaction.

A server that was started anew may be another machine with another clock, after a failover, and was away for a while
that nobody can tell. So each start is noted, and whoever first meets one that is not lets nothing be declared lost for
a lease. A step of the clock while the server runs is noticed by the processes that run duties.
"""

from collections.abc import Sequence
from typing import NamedTuple

from psycopg import errors

from perdure.ambient import Clock, SystemClock
from perdure.domain import limits
from perdure.store.postgres.session import Session
from perdure.store.postgres.transaction import Opening, Transaction
from perdure.store.postgres.wire import Answer
from perdure.store.relational.doubting import suspend_losses

STEP_US = 10_000
"""The server's clock may drift by this against the machine's own between two transactions; more is a step."""

UNSURE_US = 50_000
"""Where the server's clock is not known as well as this, a transaction is begun by itself."""


class Stepped(errors.SerializationFailure):
    """The server's clock is not where it was thought to be: run again, by now it is known."""


class Reckoned(NamedTuple):
    """An instant by the store's clock, and when that was by the machine's monotonic one."""

    now_us: int
    sent_us: int


class StoreClock:
    """Store time for this process. `clock` replaces the server's, for tests.

    So that a transaction can begin together with its first statement, its instant is reckoned from what earlier
    ones were told. Then it is compared with what the server's clock shows: had that stepped, all is run again.
    """

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self._noted_us = 0
        self._monotonic_us = SystemClock().monotonic_us
        self._ahead_us: tuple[int, int] | None = None
        """By how much the server's clock is ahead of the machine's monotonic one: at least, and at most."""
        self._latest_us = 0

    def begin(self, session: Session, *, durable: bool) -> Transaction:
        """A transaction that writes. The server hears of it by its first statement, where that is possible."""
        ahead = self._ahead_us if self._clock is None else None
        sure = ahead is not None and ahead[1] - ahead[0] <= UNSURE_US
        queries = session.opening(durable=durable) if sure else None
        sent_us = self._monotonic_us()
        if queries is None or ahead is None:
            server_us = session.begin(durable=durable)
            self._learn(sent_us, server_us)
            return Transaction(session.connection, self.now_us(server_us), session.wire, None, self, session.dialect)
        # Of two threads, the one that is later must not be the earlier one in the store.
        now_us = self._latest_us = max(self._latest_us, sent_us + ahead[0])

        def begun(answers: Sequence[Answer]) -> None:
            ((*_, server_us),) = answers[-1].rows or [(0,)]
            if not self._learn(sent_us, server_us):
                raise Stepped("the server's clock has stepped")

        opening = Opening(queries, begun)
        return Transaction(session.connection, now_us, session.wire, opening, self, session.dialect)

    def reckoned(self, server_start_us: int) -> Reckoned | None:
        """The instant for a statement without a transaction, on a server that was started then and noted.

        `None` where it is not known well enough.
        """
        if self._clock is not None or self._ahead_us is None or server_start_us != self._noted_us:
            return None
        least_us, most_us = self._ahead_us
        if most_us - least_us > UNSURE_US:
            return None
        sent_us = self._monotonic_us()
        self._latest_us = max(self._latest_us, sent_us + least_us)
        return Reckoned(self._latest_us, sent_us)

    def showed(self, server_us: int, reckoned: Reckoned) -> None:
        """The server's clock showed this since an instant was reckoned."""
        self._learn(reckoned.sent_us, server_us)

    def _learn(self, sent_us: int, server_us: int) -> bool:
        """Note what the server's clock showed since `sent_us`; whether it was about where it was thought to be."""
        least_us, most_us = server_us - self._monotonic_us(), server_us - sent_us
        known = self._ahead_us
        if known is not None:
            low_us, high_us = max(known[0], least_us), min(known[1], most_us)
            if low_us <= high_us:
                self._ahead_us = (low_us, high_us)
                return True
            if low_us - high_us <= STEP_US:
                # It drifts.
                self._ahead_us = (least_us, most_us)
                return True
        self._ahead_us, self._latest_us = (least_us, most_us), 0
        return known is None

    def reckoned_us(self) -> int:
        """The instant that it is now, from what earlier transactions were told: not later than it is."""
        if self._clock is not None:
            return self._clock.wall_us()
        return self._monotonic_us() + self._ahead_us[0] if self._ahead_us is not None else 0

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
