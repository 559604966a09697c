"""The write-ahead log, kept short: who moves its content into the database file, and when.

Automatic checkpoints are off. The writer checkpoints under the file lock after it has answered: passively (waits for
nobody) each time another 4 MB have been logged, and from 64 MB on it also cuts the file, once no reader is in its way.
A reader that stays keeps everything logged after it began: SQLite cannot let go of that, so the log grows by what is
written meanwhile, and shrinks at the next write after the reader has gone.
"""

from collections.abc import Callable

import apsw

PAGE_BYTES = 4096
PASSIVE_EVERY_PAGES = 4 * 1024 * 1024 // PAGE_BYTES
CUT_FROM_PAGES = 64 * 1024 * 1024 // PAGE_BYTES
CUT_RETRY_US = 1_000_000
"""A cut that a reader prevented is tried again no sooner than this."""


class WriteAheadLog:
    """Counts what is logged, and checkpoints. Used by the writer's thread only."""

    def __init__(self, monotonic_us: Callable[[], int], lock_timeout_ms: int) -> None:
        self._monotonic_us = monotonic_us
        self._lock_timeout_ms = lock_timeout_ms
        self._pages = 0
        self._done_at_pages = 0
        self._next_cut_us = 0

    def watch(self, connection: apsw.Connection) -> None:
        """Count the pages that this connection logs."""
        connection.set_wal_hook(self._committed)

    def _committed(self, connection: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._done_at_pages:
            # The log has started over since the last checkpoint.
            self._done_at_pages = 0
        self._pages = pages
        return apsw.SQLITE_OK

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        if self._pages - self._done_at_pages >= PASSIVE_EVERY_PAGES:
            return True
        return self._pages >= CUT_FROM_PAGES and self._monotonic_us() >= self._next_cut_us

    def checkpoint(self, connection: apsw.Connection) -> None:
        """Move what can be moved into the database file, and cut a long log. Under the file lock. Waits for nobody."""
        connection.set_busy_timeout(0)
        try:
            logged, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._done_at_pages = self._pages
            if logged == moved and logged >= CUT_FROM_PAGES:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._pages = self._done_at_pages = 0
        except (apsw.BusyError, apsw.LockedError):
            pass
        finally:
            self._next_cut_us = self._monotonic_us() + CUT_RETRY_US
            connection.set_busy_timeout(self._lock_timeout_ms)
