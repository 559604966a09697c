"""Whether the file that is open is still the one at its path.

SQLite goes on writing into a file that was removed or replaced under it, and everything acknowledged from then on is
lost. So the writer looks at the file now and then and at the log before each answer, and answers nothing while the path
leads elsewhere; and readers look now and then, so that nobody is told what has no future.
"""

import os

import apsw

from perdure.ambient import SystemClock
from perdure.errors import StoreUnreachable

LOOK_EVERY_US = 1_000_000

FINE_US = 50_000
COARSE_US = 3_000_000
"""A folder that has not changed for so long shows its next change by another time: the ticks of clocks and filesystems
are shorter. `COARSE_US` is for filesystems that keep whole seconds."""
SECOND_NS = 1_000_000_000


class FileIdentity:
    """The file that a store began with. The log is for the writer's thread only."""

    def __init__(self, path: str) -> None:
        self._path = path
        # SQLite follows links, and keeps its log where they lead.
        real = os.path.realpath(path)
        self._log = f"{real}-wal"
        self._folder = os.path.dirname(real)
        # The machine's own time, whatever the store's is: files have that.
        self._clock = SystemClock()
        self._known_log: tuple[int, int] | None = None
        self._known_folder: tuple[int, ...] | None = None
        """The folder as it was when the log was seen in it; `None` when its next change might not show."""
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

        A log cannot go away without a change of its folder, so the folder is asked first: where the times of files are
        exact once somebody has asked for them (Linux from 6.13 on), asking the log itself makes its next sync write
        them, which takes as long as half a commit.
        """
        folder = self._folder_now()
        if folder != self._known_folder:
            self._known_folder = None
            self._check_log_itself()
            if self._has_settled(folder):
                self._known_folder = folder

    def _folder_now(self) -> tuple[int, ...]:
        """What tells one state of the folder from the next."""
        found = os.stat(self._folder)
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns

    def _has_settled(self, folder: tuple[int, ...]) -> bool:
        """Whether a change of the folder from now on would show."""
        changed_ns = max(folder[2:])
        settled_us = FINE_US if changed_ns % SECOND_NS else COARSE_US
        return self._clock.wall_us() - changed_ns // 1000 >= settled_us

    def _check_log_itself(self) -> None:
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
        self._known_folder = None

    def check(self) -> None:
        """Raise `StoreUnreachable` when another file, or none, is at the path now."""
        if self._at_path() != self._file:
            raise StoreUnreachable(
                f"{self._path} was removed or replaced while open: put the file back, or start this process again",
                path=self._path,
            )
