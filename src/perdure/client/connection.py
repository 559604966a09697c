"""One HTTP/1.1 connection: a request, its answer, the next request.

Our own, because the general clients cost 1 to 2 ms of processor time a request and this costs 0.1 ms: docs/adr tells.
"""

import asyncio
from typing import NamedTuple, cast

import httptools

HEAD_MAX_BYTES = 64 * 1024
ANSWER_MAX_BYTES = 256 * 1024 * 1024


class Unreachable(Exception):
    """No connection could be had: nothing was sent."""


class NoAnswer(Exception):
    """The request was sent, at least in part, and no whole answer came: it may have been carried out."""


class Answer(NamedTuple):
    """What came back. Names of headers are lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Connection(asyncio.Protocol):
    """Takes one request at a time. It is of no use any more once it is `closed`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = 0.0
        self._silence = 0.0
        self._until = 0.0
        self._headers: dict[bytes, bytes] = {}
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self.closed = False
        self.idle_since = 0.0

    async def ask(self, data: bytes, silence: float, whole: float) -> Answer:
        """Send a request and wait for its answer. `silence`: the longest time in which nothing is heard, `whole`: the
        longest time altogether, in seconds. Raises `NoAnswer`; the connection is closed then, as it is on a cancel.
        """
        if self.closed or self._transport is None or self._waiting is not None:
            raise NoAnswer("the connection is closed")
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._head_bytes = {}, 0
        self._body, self._body_bytes = [], 0
        self._heard = self._loop.time()
        self._silence, self._until = silence, self._heard + whole
        waiting = self._waiting = self._loop.create_future()
        self._timer = self._loop.call_at(min(self._heard + silence, self._until), self._check)
        self._transport.write(data)
        try:
            answer: Answer = await waiting
            return answer
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiting = None
            self._timer.cancel()
            self.idle_since = self._loop.time()

    def close(self) -> None:
        """Close it at once. Harmless when closed already."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.closed = True
        self._fail(f"the connection was closed before the answer ({error})" if error else "the connection was closed")

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._heard = self._loop.time()
        if self._waiting is None or self._parser is None or self._waiting.done():
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the answer is not HTTP ({error})")
            self.close()

    # What the parser tells

    def on_message_begin(self) -> None:
        """An answer begins. One that nobody asked for belongs to no request, and neither would what follows it."""
        if self._waiting is None or self._waiting.done():
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of the answer."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > HEAD_MAX_BYTES:
            self._too_long()
        self._headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        """A piece of the answer."""
        self._body_bytes += len(data)
        if self._body_bytes > ANSWER_MAX_BYTES:
            self._too_long()
            return
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self._headers, self._body = {}, []
            return
        if not self._parser.should_keep_alive():
            self.close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Answer(status, self._headers, b"".join(self._body)))

    def _too_long(self) -> None:
        self._fail("the answer is longer than an answer may be")
        self.close()

    def _check(self) -> None:
        """Give up what has been silent for too long."""
        at = min(self._heard + self._silence, self._until)
        if self._loop.time() < at:
            self._timer = self._loop.call_at(at, self._check)
            return
        self._fail("no answer came in time")
        self.close()

    def _fail(self, why: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(NoAnswer(why))
