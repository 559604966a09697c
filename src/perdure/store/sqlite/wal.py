"""The write-ahead log, kept short: who moves its content into the database file, and when.

Automatic checkpoints are off. The writer checkpoints under the file lock: passively (waits for nobody) each time 4 MB
more have been logged, and from 64 MB on it also cuts the file, once no reader is in its way. Whoever writes meanwhile
waits for some milliseconds, so it is done when nobody has written for a moment, and after 8 MB at the latest.
A reader that stays keeps everything logged after it began: SQLite cannot let go of that, so the log grows by what is
written meanwhile, and shrinks at the next write after the reader has gone. Our own readers stay no longer than
`readers.QUESTION_MAX_US`, so a long log is the work of other programs, and whoever runs the store is told of it.
After a write that found the disk full it checkpoints too: what has been moved leaves its place to be used again.
"""

import logging
import os
from collections.abc import Callable

import apsw

from perdure.domain.limits import SECOND_US
from perdure.store.sqlite.log_length import PAGE_BYTES, LogLength

PASSIVE_EVERY_PAGES = 4 * 1024 * 1024 // PAGE_BYTES
PRESSING_PAGES = 2 * PASSIVE_EVERY_PAGES
QUIET_US = 2_000
"""Nobody has written for so long: a good moment for a checkpoint."""
CUT_FROM_PAGES = 64 * 1024 * 1024 // PAGE_BYTES
CUT_RETRY_US = SECOND_US
"""A cut that a reader prevented, or a checkpoint that somebody else's did, is tried again no sooner than this."""
LONG_BYTES = 256 * 1024 * 1024
"""A log of this length is told of."""
TELL_EVERY_US = 60 * SECOND_US

_log = logging.getLogger("perdure.store")


class WriteAheadLog:
    """Counts what is logged, and checkpoints. Used by the writer's thread only."""

    def __init__(self, monotonic_us: Callable[[], int], lock_timeout_ms: int) -> None:
        self._monotonic_us = monotonic_us
        self._lock_timeout_ms = lock_timeout_ms
        self._pages = 0
        self._done_at_pages = 0
        self._next_cut_us = 0
        self._next_telling_us = 0
        self._full = False
        self._length = LogLength()

    def watch(self, connection: apsw.Connection) -> None:
        """Count the pages that this connection logs."""
        self._length.begin()
        connection.set_wal_hook(self._committed)

    def _committed(self, connection: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._done_at_pages:
            # The log has started over since the last checkpoint.
            self._done_at_pages = 0
        self._pages = pages
        self._length.logged(pages)
        return apsw.SQLITE_OK

    @property
    def pages(self) -> int:
        """How many pages the log had after the last commit of this connection."""
        return self._pages

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        if self._full or self._pages - self._done_at_pages >= PASSIVE_EVERY_PAGES:
            return True
        return self._pages >= CUT_FROM_PAGES and self._monotonic_us() >= self._next_cut_us

    @property
    def pressing(self) -> bool:
        """Whether a checkpoint waits for a good moment no longer."""
        return self._full or self._pages - self._done_at_pages >= PRESSING_PAGES

    @property
    def short(self) -> bool:
        """Whether small commits will make the file of the log grow soon."""
        return self._length.short

    def lengthen(self, connection: apsw.Connection) -> None:
        """Make the file of the log longer before that. Under the file lock. Waits for nobody."""
        connection.set_busy_timeout(0)
        try:
            self._length.lengthen(connection)
        except apsw.BusyError:
            # Somebody else writes. The next commit asks again.
            pass
        finally:
            connection.set_busy_timeout(self._lock_timeout_ms)

    def found_full(self) -> None:
        """A write found no space: checkpoint next, however short the log is."""
        self._full = True

    def checkpoint(self, connection: apsw.Connection) -> None:
        """Move what can be moved into the database file, and cut a long log. Under the file lock. Waits for nobody."""
        connection.set_busy_timeout(0)
        try:
            logged, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._done_at_pages = self._pages
            if moved < logged:
                self._tell_of_length(connection.filename, logged)
            if logged == moved and logged >= CUT_FROM_PAGES:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._pages = self._done_at_pages = 0
                self._length.begin()
        except (apsw.BusyError, apsw.LockedError):
            pass
        finally:
            self._full = False
            self._next_cut_us = self._monotonic_us() + CUT_RETRY_US
            connection.set_busy_timeout(self._lock_timeout_ms)

    def _tell_of_length(self, path: str, pages: int) -> None:
        now_us = self._monotonic_us()
        if pages * PAGE_BYTES >= LONG_BYTES and now_us >= self._next_telling_us:
            self._next_telling_us = now_us + TELL_EVERY_US
            _log.warning("%s: %s", path, _fact(pages * PAGE_BYTES))


def long_log(path: str) -> str | None:
    """What is to be told of the log beside a database, if it has become long."""
    try:
        length = os.stat(f"{path}-wal").st_size
    except OSError:
        return None
    return _fact(length) if length >= LONG_BYTES else None


def _fact(length: int) -> str:
    return (
        f"the store's log has {length // 2**20} MB and cannot be emptied while somebody reads from an old snapshot:"
        " look for a program that left a transaction open on the file"
    )
