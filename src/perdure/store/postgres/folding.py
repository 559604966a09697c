"""Adding up what transactions appended to the counters."""

from perdure.ambient import Clock
from perdure.domain import limits
from perdure.store.postgres.transaction import Transaction

FOLD_EVERY_US = limits.SECOND_US
FOLD_AWAITED_US = 10 * limits.SECOND_US
FOLD_MAX_CHANGES = 5_000
"""The most changes that one fold takes. After a fold that took as many, the next chance is taken at once."""
FOLD_WHOLE_EVERY = 60
"""Each fold begins where the last one found its first change; one in so many begins at the first there is."""


class Folds:
    """Folds now and then. From any thread: of two folds at once, the second leaves it to the first.

    Readers of counts add what is not folded yet, so only what that costs them depends on this: they read the changes of
    one `FOLD_EVERY_US`, and more only where more than `FOLD_MAX_CHANGES` come between two chances to fold.
    """

    def __init__(self, clock: Clock) -> None:
        self._monotonic_us = clock.monotonic_us
        self._next_us = 0
        self._first = 0
        self._folded = 0
        self._is_behind = False
        """Whether the last fold took as many changes as one takes: others are left."""

    def fold_if_time(self, tx: Transaction, *, awaited: bool = False) -> None:
        """Fold some changes if the last fold was long enough ago; later where somebody waits for what has been done,
        unless changes are left that gather.
        """
        now_us = self._monotonic_us()
        if now_us >= self._next_us + (FOLD_AWAITED_US if awaited and not self._is_behind else 0):
            self._next_us = now_us + FOLD_EVERY_US
            self._is_behind = self.fold(tx) >= FOLD_MAX_CHANGES
            if self._is_behind:
                self._next_us = now_us

    def fold(self, tx: Transaction) -> int:
        """Fold some changes; how many."""
        self._folded += 1
        if self._folded % FOLD_WHOLE_EVERY == 0:
            self._first = 0
        ((first, count),) = tx.run("counts_fold", first=self._first, count=FOLD_MAX_CHANGES)
        if first is not None:
            self._first = first
        return int(count)
