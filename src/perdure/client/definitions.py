"""Documents over HTTP, with their tags in headers."""

from collections.abc import Mapping
from typing import Any

from perdure.client.connection import Answer
from perdure.client.transport import Repeat, Request, Transport
from perdure.client.views import quoted
from perdure.domain import limits
from perdure.engine import encoding
from perdure.engine.definitions import ANY, NONE, TYPES, Document, checked_policy
from perdure.errors import Invalid, NotFound
from perdure.store.definitions import DefinitionType


class RemoteDefinitions:
    """What operators do with documents, over HTTP."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, type: DefinitionType, name: str) -> Document | None:
        """The document, or `None`."""
        request = Request("GET", _path(type, name))
        try:
            value, answer = await self._transport.ask_whole(request, dict[str, Any])
        except NotFound:
            return None
        return Document(type, name, _etag(answer), value)

    async def put(
        self, type: DefinitionType, name: str, value: Mapping[str, Any], expected: str | None = None
    ) -> Document:
        """Store a document, over the expected one only. Raises `PreconditionFailed`, and `Invalid` with the field."""
        path = _path(type, name)
        if type != "kind":
            # Told in the same words as at the store; the gateway looks once more.
            value = checked_policy(type, value)
        body = encoding.encode(dict(value), "document", limits.SCHEMA_MAX_BYTES * 2)
        # The same again would meet its own first: with a tag, only what did not arrive is sent again.
        repeat = Repeat.ALWAYS if expected is None else Repeat.UNSENT
        request = Request("PUT", path, body, headers=expecting(expected), repeat=repeat)
        stored, answer = await self._transport.ask_whole(request, dict[str, Any])
        return Document(type, name, _etag(answer), stored, answer.status == 201)

    async def delete(self, type: DefinitionType, name: str, expected: str | None = None) -> bool:
        """Remove a document; false when there was none. Raises `PreconditionFailed`."""
        request = Request("DELETE", _path(type, name), headers=expecting(expected), repeat=Repeat.UNSENT)
        try:
            await self._transport.ask(request, None)
        except NotFound:
            return False
        return True


def _path(type: DefinitionType, name: str) -> str:
    if type not in TYPES:
        raise Invalid(f"a definition is of a {', a '.join(TYPES)}, not of a {type!r}", field="type")
    return f"/v1/definitions/{type}s/{quoted(name)}"


def expecting(expected: str | None) -> bytes:
    """The headers that say what is expected to be there. Raises `Invalid` for what is no tag."""
    if expected is None:
        return b""
    if expected == NONE:
        return b"if-none-match: *\r\n"
    if not expected.isascii() or not expected.isprintable() or '"' in expected:
        raise Invalid(f"{expected!r} is no tag of a document", field="expected")
    return b"if-match: %s\r\n" % (b"*" if expected == ANY else f'"{expected}"'.encode())


def _etag(answer: Answer) -> str:
    return answer.headers.get(b"etag", b"").decode("latin-1").strip('"')
