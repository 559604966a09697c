"""Calls that need a lock which somebody else holds, while the others of their flush go on.

A transaction waits for a lock no longer than `LOCK_TURN_MS`. Then its flush is done in parts, until whoever needs the
lock stands alone: that call is tried again with later flushes, until as much time has passed as it may wait. A caller's
open transaction on one idempotency key so costs the others a moment, and not the whole of their patience.
"""

from collections.abc import Callable, Sequence

from psycopg.errors import LockNotAvailable

from perdure.ambient import Clock, SystemClock
from perdure.domain.limits import SECOND_US
from perdure.flush import Call

LOCK_TURN_MS = 200
"""How long one transaction waits for a lock."""
HELD_PAUSE_SECONDS = 0.4
"""Between two tries of what is held up: so others have the connection for two thirds of the time."""
TURNS_MAX = 20
"""So many parts of one flush wait for a lock. After that nobody asks: where so much is held, all of it is."""


class HeldUp:
    """The calls that wait for a lock, on one connection. `patience`: for how many seconds each may."""

    def __init__(self, patience: float, clock: Clock | None = None) -> None:
        self._patience_us = round(patience * SECOND_US) - LOCK_TURN_MS * 1_000
        self._monotonic_us = (clock or SystemClock()).monotonic_us
        self._since: dict[Call, int] = {}
        self._waiting: list[Call] = []
        self._due_us = 0

    @property
    def calls(self) -> Sequence[Call]:
        """Those that wait now, the oldest first."""
        return self._waiting

    def take(self) -> list[Call]:
        """Those that wait now, to be tried again."""
        taken, self._waiting = self._waiting, []
        return taken

    def take_due(self) -> list[Call]:
        """The same, if a while has passed since they were tried."""
        return self.take() if self._monotonic_us() >= self._due_us else []

    def bounded(self, transact: Callable[[list[list[Call]]], None]) -> Callable[[list[list[Call]]], None]:
        """The same for one flush, which waits for locks no more than `TURNS_MAX` times."""
        turns: list[LockNotAvailable] = []

        def run(groups: list[list[Call]]) -> None:
            if len(turns) >= TURNS_MAX:
                raise turns[-1]
            try:
                transact(groups)
            except LockNotAvailable as error:
                turns.append(error)
                raise

        return run

    def sift(self, calls: Sequence[Call]) -> list[Call]:
        """Those of the calls that have their answer; the others are kept."""
        now_us = self._monotonic_us()
        answered = []
        for call in calls:
            began_us = self._since.setdefault(call, now_us) if _lacks_a_lock(call) else None
            if began_us is not None and now_us - began_us < self._patience_us:
                call.error = None
                self._waiting.append(call)
                self._due_us = now_us + round(HELD_PAUSE_SECONDS * SECOND_US)
            else:
                self._since.pop(call, None)
                answered.append(call)
        return answered


def _lacks_a_lock(call: Call) -> bool:
    return call.error is not None and isinstance(call.error.__cause__, LockNotAvailable)
