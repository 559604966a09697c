"""A thread that notices when the event loop stands still, and then answers in its place.

A blocked loop cannot say that it is blocked. While it is, this thread takes new connections from the same listening
sockets and tells everybody 503, so that probes and load balancers learn of it within seconds instead of hanging.
"""

import logging
import select
import socket
import threading
from collections.abc import Sequence

import msgspec

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US

BEAT_SECONDS = 0.25
BLOCKED_US = 2 * SECOND_US
"""How long the loop may stand still before it counts as blocked."""
READ_MAX_BYTES = 65_536
READ_TIMEOUT_SECONDS = 0.5

_log = logging.getLogger("perdure.gateway")

_BODY = msgspec.json.encode(
    {
        "type": "/problems/unavailable",
        "title": "The process cannot answer at the moment",
        "status": 503,
        "detail": "the event loop of this process is blocked; try again in a moment, or another process",
        "code": "unavailable",
    }
)
_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
) + _BODY


class LoopWatch:
    """Watches one event loop. `beat` is called on it again and again; `start` and `stop` once each."""

    def __init__(self, sockets: Sequence[socket.socket], clock: Clock) -> None:
        self._sockets = [each.dup() for each in sockets]
        self._clock = clock
        self._beat_us = clock.monotonic_us()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="perdure-loop-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self.beat()
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopping.set()
        self._thread.join()
        for each in self._sockets:
            each.close()

    def beat(self) -> None:
        """The loop turns."""
        self._beat_us = self._clock.monotonic_us()

    @property
    def blocked(self) -> bool:
        """Whether the loop has stood still for too long."""
        return self._clock.monotonic_us() - self._beat_us > BLOCKED_US

    def _watch(self) -> None:
        told = False
        while not self._stopping.wait(BEAT_SECONDS):
            if self.blocked and not told:
                _log.error("the event loop is blocked: new requests are answered with 503 until it turns again")
            told = self.blocked
            while self.blocked and not self._stopping.is_set():
                self._answer_waiting()

    def _answer_waiting(self) -> None:
        readable, _, _ = select.select(self._sockets, [], [], BEAT_SECONDS)
        for listening in readable:
            if not self.blocked:
                return
            try:
                connection, _ = listening.accept()
            except OSError:
                continue
            with connection:
                _answer(connection)


def _answer(connection: socket.socket) -> None:
    try:
        connection.settimeout(READ_TIMEOUT_SECONDS)
        connection.recv(READ_MAX_BYTES)
        connection.sendall(_ANSWER)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(READ_MAX_BYTES)
    except OSError:
        # The client has gone or is slow; there is nobody to tell.
        return
