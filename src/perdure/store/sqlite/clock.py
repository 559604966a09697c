"""The store's time: an offset kept in the file plus the machine's boot-time clock.

A step of the wall clock has no effect while the machine runs. After a restart of the machine (another boot id) the time
is anchored to the wall clock anew, but never behind the last instant that the store is known to have had; then nothing
is declared lost for one lease, because nobody can say how long the store was away.
"""

from perdure.ambient import Clock
from perdure.domain import limits
from perdure.store.sqlite.transaction import Connection, Transaction

NOTE_EVERY_US = limits.SECOND_US
"""How often a busy store notes its time: what happened after a note happened within this."""


class StoreClock:
    """Store time for this process. Its offset never changes while the machine runs."""

    __slots__ = ("_clock", "_noted_us", "_offset_us")

    def __init__(self, clock: Clock, offset_us: int, noted_us: int) -> None:
        self._clock = clock
        self._offset_us = offset_us
        self._noted_us = noted_us

    def now_us(self) -> int:
        """Microseconds since 1970 UTC as the store judges."""
        return self._offset_us + self._clock.boot_us()

    def note(self, tx: Transaction) -> None:
        """Note the time within a transaction that writes anyway, now and then."""
        if tx.now_us - self._noted_us >= NOTE_EVERY_US:
            tx.run("clock_note")
            self._noted_us = tx.now_us


def find_anchor(connection: Connection, clock: Clock) -> StoreClock | None:
    """The store's time as another process of this start of the machine anchored it; `None` when none did."""
    known = Transaction(connection, 0).document("clock_read") or {}
    if known.get("boot_id") != clock.boot_id():
        return None
    offset_us, last_us = int(known["offset_us"]), int(known["last_us"])
    # A machine that cannot name its starts shows one by a boot clock that went back.
    if offset_us + clock.boot_us() < last_us:
        return None
    return StoreClock(clock, offset_us, last_us)


def anchor(connection: Connection, clock: Clock) -> StoreClock:
    """The store's time, anchored to this start of the machine if nobody has yet. Within a transaction that writes."""
    found = find_anchor(connection, clock)
    if found is not None:
        return found
    known = Transaction(connection, 0).document("clock_read") or {}
    # What was written after the last note happened no later than this.
    now_us = max(clock.wall_us(), int(known.get("last_us", 0)) + NOTE_EVERY_US)
    offset_us = now_us - clock.boot_us()
    tx = Transaction(connection, now_us)
    tx.run("clock_anchor", boot_id=clock.boot_id(), offset_us=offset_us)
    if known:
        tx.run("clock_suspend_losses", until_us=now_us + limits.LEASE_DEFAULT_US)
    return StoreClock(clock, offset_us, now_us)
