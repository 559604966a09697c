"""Up to which instant nothing waits for its time any more.

What was due, or was to end, leaves dead entries in its index by time, and the first one that lives may lie behind all
of them. What is due now lies between the instant up to which all was dealt with and now, and only that is read. What is
entered further back all the same, because its transaction committed late, is found by a look from the beginning.
"""

from collections.abc import Callable

from perdure.store.postgres.transaction import Transaction
from perdure.store.postgres.whole_looks import WholeLooks

BEGINNING_US = 0
ENTERED_LATE_US = 250_000
"""What is entered no longer than this after its own instant is found at once."""


class Passed:
    """What one process knows of one sort of instant. From any thread: of two looks at once either is remembered.

    Like marks these are hints: a process that has none yet finds the same.
    """

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._monotonic_us = monotonic_us
        self._whole = WholeLooks(monotonic_us)
        self._since_us = BEGINNING_US

    def look(self, tx: Transaction) -> "Look":
        """Begin to look for what is due at the instant of a transaction."""
        begun_us = self._monotonic_us()
        since_us = BEGINNING_US if self._whole.is_time else self._since_us

        def found(first_us: int | None) -> None:
            tx.after_commit(lambda: self._found(since_us, tx.now_us, first_us, begun_us))

        return Look(since_us, found)

    def _found(self, since_us: int, now_us: int, first_us: int | None, begun_us: int) -> None:
        if since_us == BEGINNING_US:
            self._whole.looked(begun_us)
        passed_us = now_us - ENTERED_LATE_US
        self._since_us = passed_us if first_us is None else min(first_us, passed_us)


class Look:
    """One look, from `since_us` on. `found` is told the first instant that was found, if one has come."""

    def __init__(self, since_us: int, found: Callable[[int | None], None]) -> None:
        self.since_us = since_us
        self.found = found
