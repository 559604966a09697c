"""HTTP/1.1 with bounds that hold before a request is kept: bytes of headers, time to arrive, connections."""

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from perdure.errors import Malformed, PerdureError
from perdure.gateway.corked import CorkedTransport
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.problems import members_of
from perdure.gateway.refusals import HeadersTooLarge, TooManyConnections, TooSlow
from perdure.wire.problem import MEDIA_TYPE

LIMITS = "perdure_limits"
"""Under this name the protocol finds its limits in the state of the server."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, bounded. One request has arrived within `receive_timeout`, or the connection ends."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._bounds: GatewayLimits = self.app_state.get(LIMITS) or GatewayLimits()
        self._header_bytes = 0
        self._in_headers = True
        self._receiving_since: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._corked: CorkedTransport

    def connection_made(self, transport: Any) -> None:
        """Take the connection, if there is room for it."""
        self._corked = CorkedTransport(transport)
        super().connection_made(self._corked)  # type: ignore[arg-type]
        if len(self.connections) > self._bounds.connections:
            self._refuse(
                TooManyConnections(
                    f"all {self._bounds.connections:,} connections of this gateway are taken: try again in a moment;"
                    " whoever runs it can allow more with PERDURE_CONNECTIONS, or run another one on the same store"
                )
            )
            return
        self._receiving_since = self.loop.time()
        self._watch = self.loop.call_later(self._bounds.receive_timeout, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the connection."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrived. Headers over their bound end the connection."""
        if self.parser is None or self.transport.is_closing():
            return
        if self._receiving_since is None and (self.cycle is None or self.cycle.response_complete):
            self._receiving_since = self.loop.time()
        before = self._in_headers
        super().data_received(data)
        if before and self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > self._bounds.header_max_bytes and not self.transport.is_closing():
                self._refuse(self._too_large())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_headers, self._header_bytes = True, 0
        self._receiving_since = self.loop.time()

    def on_headers_complete(self) -> None:
        """The headers are there: they are counted once more, because they may have come in one piece."""
        self._in_headers = False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._bounds.header_max_bytes or len(self.headers) > self._bounds.header_max_count:
            self._refuse(self._too_large())
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request has arrived as a whole."""
        self._receiving_since = None
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer has been given to its end."""
        self._corked.flush()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What arrived is no HTTP."""
        self._refuse(Malformed("this is no HTTP/1.1 request", field="request"))

    def _too_large(self) -> HeadersTooLarge:
        return HeadersTooLarge(
            f"the headers are over {self._bounds.header_max_bytes:,} bytes, or more than"
            f" {self._bounds.header_max_count}",
            limit_bytes=self._bounds.header_max_bytes,
        )

    def _look(self) -> None:
        """End a connection whose request did not arrive in time; look again when the next one could be late."""
        now, since = self.loop.time(), self._receiving_since
        late = since is not None and now - since >= self._bounds.receive_timeout
        if late and not self.transport.is_closing():
            self._end_late()
            return
        begun = now if since is None else since
        self._watch = self.loop.call_at(begun + self._bounds.receive_timeout, self._look)

    def _end_late(self) -> None:
        answering = self.cycle is not None and not self.cycle.response_complete and not self._in_headers
        if answering or self._header_bytes == 0:
            # The application answers a late body itself; to a connection that said nothing there is nothing to say.
            self.loop.call_later(1.0, self.transport.close) if answering else self.transport.close()
            return
        self._refuse(TooSlow(f"the request did not arrive within {self._bounds.receive_timeout:g} s"))

    def _refuse(self, error: PerdureError) -> None:
        body = msgspec.json.encode(members_of(error))
        lines = [
            STATUS_LINE[error.status],
            b"content-type: " + MEDIA_TYPE.encode(),
            b"\r\ncontent-length: %d" % len(body),
            b"\r\nretry-after: 1" if error.status == 503 else b"",
            b"\r\nconnection: close\r\n\r\n",
            body,
        ]
        self.transport.write(b"".join(lines))
        self.transport.close()
