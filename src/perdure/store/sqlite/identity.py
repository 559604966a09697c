"""Whether the file that is open is still the one at its path.

SQLite goes on writing into a file that was removed or replaced under it, and everything acknowledged from then on is
lost. So the writer looks now and then, and stops for good when the path leads elsewhere.
"""

import os

from perdure.errors import StoreUnreachable

LOOK_EVERY_US = 1_000_000


class FileIdentity:
    """The file that a store began with. Used by the writer's thread."""

    def __init__(self, path: str) -> None:
        self._path = path
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

    def check(self) -> None:
        """Raise `StoreUnreachable` when another file, or none, is at the path now."""
        if self._at_path() != self._file:
            raise StoreUnreachable(
                f"{self._path} was removed or replaced while open: put the file back, or start this process again",
                path=self._path,
            )
