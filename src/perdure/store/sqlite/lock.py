"""The lock beside the database file that makes its writers take turns.

SQLite's own lock is polled with growing sleeps: with four writing processes somebody waits for seconds. `flock` blocks,
is fair enough, and the kernel lets go of it when its holder dies.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator

from perdure.errors import StoreBusy


class FileLock:
    """One process's handle of the lock. Used by one thread at a time."""

    def __init__(self, database: str, timeout: float) -> None:
        self._path = f"{database}-lock"
        self._timeout = timeout
        self._descriptor = -1
        self.reopen()

    def reopen(self) -> None:
        """Take a handle of our own, in a forked child too: the inherited one would keep the lock held after its parent
        has died.
        """
        self.close()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._guard = threading.Lock()
        self._granted = threading.Event()
        self._in_line = False
        self._wanted = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock. Raises `StoreBusy` when it cannot be had in time."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def acquire(self) -> None:
        """Take the lock. Raises `StoreBusy` when it cannot be had in time."""
        if self.acquire_at_once():
            return
        if not self._wait_in_line():
            raise StoreBusy(
                f"{self._path} was not had within {self._timeout:g} s: another process holds it; "
                "look for one that is stopped or stuck",
                path=self._path,
                timeout=self._timeout,
            )

    def acquire_at_once(self) -> bool:
        """Take the lock if it can be had without waiting."""
        if self._in_line:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_in_line(self) -> bool:
        """A blocking `flock` has no time limit, so a thread of its own waits for it."""
        with self._guard:
            self._wanted = True
            self._granted.clear()
            if not self._in_line:
                self._in_line = True
                threading.Thread(target=self._block, args=(self._descriptor,), name="perdure-lock", daemon=True).start()
        self._granted.wait(self._timeout)
        with self._guard:
            self._wanted = False
            return self._granted.is_set()

    def _block(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            # Closed while it waited: nobody wants it any more.
            self._in_line = False
            return
        with self._guard:
            self._in_line = False
            if self._wanted:
                self._granted.set()
            else:
                # Too late: whoever wanted it has given up.
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def release(self) -> None:
        """Let go of the lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go for good."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
