"""Whether the file that is open is still the one at its path.

SQLite goes on writing into a file that was removed or replaced under it, and everything acknowledged from then on is
lost. So the writer looks now and then, and stops for good when the path leads elsewhere.
"""

import os

import apsw

from perdure.errors import StoreUnreachable

LOOK_EVERY_US = 1_000_000


class FileIdentity:
    """The file that a store began with. Used by the writer's thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._known_log: tuple[int, int] | None = None
        self._file = self._at_path()
        self._next_look_us = 0

    def _at_path(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def check_now_and_then(self, now_us: int) -> None:
        """`check`, but once a second only."""
        if now_us >= self._next_look_us:
            self.check()
            self._next_look_us = now_us + LOOK_EVERY_US

    def check_log(self) -> None:
        """Raise `apsw.IOError` when the write-ahead log that was written is not the one beside the file any more.

        It goes away when the last connection that SQLite knows of is closed, and it does not know of those of another
        copy of SQLite in this process. What was committed into a log that is gone is lost.
        """
        try:
            found = os.stat(self._log)
        except FileNotFoundError:
            log = None
        else:
            log = found.st_dev, found.st_ino
        if log is not None and self._known_log is None:
            self._known_log = log
        if log != self._known_log:
            self._known_log = None
            raise apsw.IOError(
                f"{self._log} was removed or replaced while open: no other copy of SQLite, such as Python's sqlite3, "
                "may open the file in this process, and no program may remove what stands beside it"
            )

    def forget_log(self) -> None:
        """The connection is opened anew, and with it the log."""
        self._known_log = None

    def check(self) -> None:
        """Raise `StoreUnreachable` when another file, or none, is at the path now."""
        if self._at_path() != self._file:
            raise StoreUnreachable(
                f"{self._path} was removed or replaced while open: put the file back, or start this process again",
                path=self._path,
            )
