"""Up to which instant nothing waits for its time any more.

What was due, or was to end, leaves dead entries in its index by time, and the first one that lives may lie behind all
of them. What is due now lies between the instant up to which all was dealt with and now, and only that is read. What is
entered further back all the same, because its transaction committed late, is found by a look from the beginning.
"""

from collections.abc import Callable
from typing import NamedTuple

from perdure.store.postgres.marks import LATE_EVERY_US
from perdure.store.postgres.transaction import Transaction
from perdure.store.postgres.whole_looks import SETTLED_US, WholeLooks

BEGINNING_US = 0


class Passed:
    """What one process knows of one sort of instant. From any thread: of two looks at once either is remembered.

    Like marks these are hints: a process that has none yet finds the same.
    """

    def __init__(self, monotonic_us: Callable[[], int], every_us: int = LATE_EVERY_US) -> None:
        self.monotonic_us = monotonic_us
        self.whole = WholeLooks(monotonic_us, every_us)
        self._since_us = BEGINNING_US

    def look(self, tx: Transaction) -> "Look":
        """Begin to look for what is due at the instant of a transaction."""
        return Look(self, tx, BEGINNING_US if self.whole.is_time else self._since_us)

    def remember(self, since_us: int) -> None:
        """What is due before that has been dealt with."""
        self._since_us = since_us


class Look:
    """One look, from `since_us` on."""

    def __init__(self, passed: Passed, tx: Transaction, since_us: int) -> None:
        self.since_us = since_us
        self._passed = passed
        self._tx = tx
        # The transaction's instant goes on while it waits, and what is due by then has not been looked for.
        self._now_us = tx.now_us
        self._begun_us = self._ended_us = passed.monotonic_us()

    def answered(self) -> None:
        """It has been asked what is due: what is done about that, and the waiting for it, are no part of the look."""
        self._ended_us = self._passed.monotonic_us()

    def found(self, first_us: int | None) -> None:
        """Remember, once the transaction has committed, which was the first instant that was found, if there is one."""
        passed_us = self._now_us - SETTLED_US
        self._tx.after_commit(lambda: self._remember(passed_us if first_us is None else min(first_us, passed_us)))

    def _remember(self, passed_us: int) -> None:
        if self.since_us == BEGINNING_US:
            self._passed.whole.looked(self._begun_us, self._ended_us)
        self._passed.remember(passed_us)

    @property
    def again_in_us(self) -> int | None:
        """After how long to look from the beginning, where this look was none: what has made it necessary may have been
        entered late.
        """
        if self.since_us == BEGINNING_US:
            return None
        return max(0, self._passed.whole.again_us - self._passed.monotonic_us())


class Looks(NamedTuple):
    """Looks for what is due and for what is past its TTL or deadline, which one statement answers."""

    due: Look
    overdue: Look

    @property
    def bindings(self) -> dict[str, int]:
        """From where on the statement looks."""
        return {"due_since": self.due.since_us, "overdue_since": self.overdue.since_us}

    def answered(self) -> None:
        """As `Look.answered`."""
        self.due.answered()
        self.overdue.answered()

    def found(self, due_us: int | None, overdue_us: int | None) -> None:
        """As `Look.found`."""
        self.due.found(due_us)
        self.overdue.found(overdue_us)
