"""A transport that sends the head of an answer together with its body: one call of the system instead of two."""

from typing import Any


class CorkedTransport:
    """Holds what looks like the head of an answer until more is written; everything else is the transport's own."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send `data`, or hold it if it is a head."""
        head = self._head
        if head is not None:
            self._head = None
            self._transport.write(head + data)
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 1"):
            self._head = data
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._head is not None:
            self.write(b"")

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._transport.close()
