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


class _Line:
    """The wait for one handle of the lock: a blocking `flock` has no time limit, so a thread of its own has it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._granted = threading.Event()
        self._wanted = False
        self.busy = False
        """A thread waits, or is about to give back what came too late."""

    def wait(self, descriptor: int, timeout: float) -> bool:
        """Wait for the lock of an open file; whether it was had in time."""
        with self._guard:
            self._wanted = True
            self._granted.clear()
            if not self.busy:
                self.busy = True
                # Its own name for the same open file: the number of a closed one may be somebody else's by then.
                own = os.dup(descriptor)
                threading.Thread(target=self._block, args=(own,), name="perdure-lock", daemon=True).start()
        self._granted.wait(timeout)
        with self._guard:
            self._wanted = False
            return self._granted.is_set()

    def _block(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with self._guard:
                if self._wanted:
                    self._granted.set()
                else:
                    # Too late: whoever wanted it has given up.
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
                self.busy = False
        finally:
            os.close(descriptor)


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
        self._line = _Line()

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
        if self.acquire_at_once() or self._line.wait(self._descriptor, self._timeout):
            return
        raise StoreBusy(
            f"{self._path} was not had within {self._timeout:g} s: another process holds it; "
            "look for one that is stopped or stuck",
            path=self._path,
            timeout=self._timeout,
        )

    def acquire_at_once(self) -> bool:
        """Take the lock if it can be had without waiting."""
        if self._line.busy:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let go of the lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go for good."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
