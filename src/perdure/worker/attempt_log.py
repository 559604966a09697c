"""What one attempt logged and how much of it is kept: its beginning as it comes, its end when it ends."""

import threading
from collections import deque
from typing import NamedTuple

from perdure.domain.limits import (
    LOG_LAST_LINES_MAX,
    LOG_LAST_MAX_BYTES,
    LOG_LINE_MAX_BYTES,
    LOG_LINES_MAX,
    LOG_MAX_BYTES,
)
from perdure.engine.bounded_text import shortened

FIRST_LINES_MAX = LOG_LINES_MAX - LOG_LAST_LINES_MAX - 1
NOTICE = (
    f"more is logged than is kept: of what follows, at most the last {LOG_LAST_LINES_MAX} lines, when the handler ends"
)
FIRST_MAX_BYTES = LOG_MAX_BYTES - LOG_LAST_MAX_BYTES - len(NOTICE)


class Noted(NamedTuple):
    """One line on its way. `at_us` is this machine's monotonic clock."""

    sequence: int
    level: str
    message: str
    at_us: int
    dropped: int = 0


class AttemptLog:
    """Lines of one attempt, from any of its threads, bounded whatever the handler does."""

    __slots__ = ("_bytes_left", "_closed", "_dropped", "_last", "_last_bytes", "_lock", "_made", "_unsent")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unsent: list[Noted] = []
        self._made = 0
        self._bytes_left: int | None = FIRST_MAX_BYTES
        """For the beginning; `None` once that is over."""
        self._last: deque[tuple[str, str, int, int]] = deque()
        """Level, message, instant and bytes of the lines at the end."""
        self._last_bytes = 0
        self._dropped = 0
        self._closed = False

    def add(self, level: str, text: str, at_us: int) -> bool:
        """Keep a line. True: there is something to send."""
        message = shortened(text, LOG_LINE_MAX_BYTES)
        size = len(message.encode())
        with self._lock:
            if self._closed:
                return False
            if self._bytes_left is not None:
                if self._made < FIRST_LINES_MAX and size <= self._bytes_left:
                    self._bytes_left -= size
                    self._send(level, message, at_us)
                    return True
                self._bytes_left = None
                self._send("warning", NOTICE, at_us)
                self._keep_last(level, message, at_us, size)
                return True
            self._keep_last(level, message, at_us, size)
            return False

    def end(self) -> bool:
        """Take no more lines; the last ones may be sent. True: there is something to send."""
        with self._lock:
            self._closed = True
            for level, message, at_us, _ in self._last:
                self._send(level, message, at_us, self._dropped)
                self._dropped = 0
            self._last.clear()
            return bool(self._unsent)

    def take(self) -> list[Noted]:
        """What is to be sent, once."""
        with self._lock:
            taken, self._unsent = self._unsent, []
            return taken

    def _send(self, level: str, message: str, at_us: int, dropped: int = 0) -> None:
        self._made += 1
        self._unsent.append(Noted(self._made, level, message, at_us, dropped))

    def _keep_last(self, level: str, message: str, at_us: int, size: int) -> None:
        self._last.append((level, message, at_us, size))
        self._last_bytes += size
        while len(self._last) > LOG_LAST_LINES_MAX or self._last_bytes > LOG_LAST_MAX_BYTES:
            self._last_bytes -= self._last.popleft()[3]
            self._dropped += 1
