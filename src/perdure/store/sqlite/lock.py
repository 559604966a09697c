"""The lock beside the database file that makes its writers take turns.

SQLite's own lock is polled with growing sleeps: with four writing processes somebody waits for seconds. `flock` blocks,
is fair enough, and the kernel lets go of it when its holder dies.
"""

import contextlib
import fcntl
import os
import threading
import weakref
from collections.abc import Iterator

from perdure.errors import StoreBusy


class FileLock:
    """One process's handle of the lock. Used by one thread at a time."""

    def __init__(self, database: str, timeout: float) -> None:
        self._path = f"{database}-lock"
        self._timeout = timeout
        self._open()
        forget_in_child(self)

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._waiter: threading.Thread | None = None
        self._granted = threading.Event()

    def reopen(self) -> None:
        """Take a handle of our own, in a forked child."""
        self.close()
        self._open()

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
        if self._waiter is None:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self._wait_in_line()
        if not self._granted.wait(self._timeout):
            raise StoreBusy(
                f"{self._path} was not had within {self._timeout:g} s: another process holds it; "
                "look for one that is stopped or stuck",
                path=self._path,
                timeout=self._timeout,
            )
        self._waiter = None

    def _wait_in_line(self) -> None:
        """A blocking `flock` has no time limit, so a thread waits. What it gets too late is kept for the next."""
        self._granted.clear()
        self._waiter = threading.Thread(target=self._block, name="perdure-lock", daemon=True)
        self._waiter.start()

    def _block(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._granted.set()

    def release(self) -> None:
        """Let go of the lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go for good."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def forget_in_child(lock: FileLock) -> None:
    """Close a forked child's copy of the descriptor: it would keep the lock held after its parent has died."""
    reference = weakref.ref(lock)

    def close_copy() -> None:
        held = reference()
        if held is not None:
            held.close()

    os.register_at_fork(after_in_child=close_copy)
