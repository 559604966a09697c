"""The write-ahead log made longer ahead of its use.

A sync of a file that has just grown waits until the file system has kept the new length too: a small commit takes twice
as long, for the first megabytes of every log. So while small commits make the log grow, the writer's thread appends
zeros before they get there. SQLite takes these for what an earlier round of the log has left: no frames of this one.
"""

import errno
import os

import apsw

from perdure.store.sqlite.statements import STATEMENTS

PAGE_BYTES = 4096
FRAME_BYTES = PAGE_BYTES + 24
"""A page as it stands in the log."""
STEP_BYTES = 1024 * 1024
LENGTH_BYTES = 9 * STEP_BYTES
"""A log is made no longer: a checkpoint comes before, and then the log starts over in the file that it has."""
SPARE_PAGES = STEP_BYTES // FRAME_BYTES // 2
"""The next step is made when no more are left: enough for what is committed meanwhile."""
SMALL_PAGES = 24
"""What a small commit logs at most. Larger ones take so long anyway that a file which grows hardly shows."""
BEGINNING_PAGES = 64
"""So much is logged by small commits before the first step: who stores a few tasks and leaves needs none."""
FREE_BYTES = 64 * STEP_BYTES
"""Space on the disk that is left to others."""

_BEGIN = STATEMENTS["transaction_begin"]
_ROLLBACK = STATEMENTS["transaction_rollback"]
_NEVER = 2**62


class LogLength:
    """When the log of one connection is to be made longer, and how."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Nothing is known of the log: it is another one, or was cut."""
        self._pages = 0
        self._logged = 0
        self._step_at_pages = 0
        self.short = False
        """Whether small commits will make the file grow soon."""

    def logged(self, pages: int) -> None:
        """A commit was logged; the log has so many pages now."""
        added, self._pages = pages - self._pages, pages
        if not 0 < added <= SMALL_PAGES:
            self.short = False
            return
        self._logged += added
        self.short = pages >= self._step_at_pages and self._logged >= BEGINNING_PAGES

    def lengthen(self, connection: apsw.Connection) -> None:
        """Make the file longer by a step, if it is not long enough and the disk has space. Raises `apsw.BusyError`.

        Nobody writes to the log meanwhile: whoever wants to needs the lock that a transaction holds.
        """
        self.short = False
        connection.execute(_BEGIN)
        try:
            length = _appended(connection.filename_wal)
        except OSError:
            length = None
        finally:
            connection.execute(_ROLLBACK)
        self._step_at_pages = _NEVER if length is None else length // FRAME_BYTES - SPARE_PAGES


def _appended(log: str) -> int | None:
    """Append a step of zeros, all of it or nothing. Returns the length then, `None` if nothing was to be done."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(descriptor).st_size
        disk = os.fstatvfs(descriptor)
        if length + STEP_BYTES > LENGTH_BYTES or disk.f_bavail * disk.f_frsize < FREE_BYTES:
            return None
        try:
            if os.pwrite(descriptor, bytes(STEP_BYTES), length) < STEP_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), log)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, length)
            raise
        return length + STEP_BYTES
    finally:
        os.close(descriptor)
