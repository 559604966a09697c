"""Handlers of documents: each with its tag, so that nobody overwrites what they have not seen."""

from typing import Any

import msgspec

from perdure import wire
from perdure.engine.definitions import ANY, Document
from perdure.engine.engine import Operations
from perdure.errors import Malformed, NotFound
from perdure.gateway.conditions import expected_of
from perdure.gateway.request import Answer, Request
from perdure.store.definitions import DefinitionType


class DefinitionHandlers:
    """What operators do with documents."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def show_queue_definition(self, request: Request) -> Answer:
        """Show a queue's policy."""
        return await self._show(request, "queue", wire.QueueDocument)

    async def put_queue_definition(self, request: Request) -> Answer:
        """Replace a queue's policy."""
        return await self._put(request, "queue", wire.QueueDocument)

    async def delete_queue_definition(self, request: Request) -> Answer:
        """Let a queue have the default policy again."""
        return await self._delete(request, "queue")

    async def show_organization_definition(self, request: Request) -> Answer:
        """Show the organization's policy."""
        return await self._show(request, "organization", wire.OrganizationDocument)

    async def put_organization_definition(self, request: Request) -> Answer:
        """Replace the organization's policy."""
        return await self._put(request, "organization", wire.OrganizationDocument)

    async def delete_organization_definition(self, request: Request) -> Answer:
        """Let the organization have the default policy again."""
        return await self._delete(request, "organization")

    async def show_kind_definition(self, request: Request) -> Answer:
        """Show what is declared of a kind."""
        return await self._show(request, "kind", wire.KindDocument)

    async def put_kind_definition(self, request: Request) -> Answer:
        """Replace what is declared of a kind."""
        return await self._put(request, "kind", wire.KindDocument)

    async def delete_kind_definition(self, request: Request) -> Answer:
        """Forget what is declared of a kind."""
        return await self._delete(request, "kind")

    async def _show(self, request: Request, type: DefinitionType, body: Any) -> Answer:
        name = _name(request, type)
        found = await self._operations.definition(type, name, request.by)
        if found is None:
            raise _nothing(type, name)
        unless = request.conditions.if_none_match
        if unless is not None and unless in (ANY, found.etag):
            return Answer(None, 304, (_tag(found),))
        return Answer(msgspec.convert(found.value, body), 200, (_tag(found),))

    async def _put(self, request: Request, type: DefinitionType, body: Any) -> Answer:
        said = msgspec.to_builtins(request.body)
        expected = expected_of(request.conditions)
        put = await self._operations.put_definition(type, _name(request, type), said, request.by, expected)
        return Answer(msgspec.convert(put.value, body), 201 if put.created else 200, (_tag(put),))

    async def _delete(self, request: Request, type: DefinitionType) -> Answer:
        name = _name(request, type)
        if request.conditions.if_none_match is not None:
            raise Malformed("a DELETE takes If-Match only", field="If-None-Match")
        if not await self._operations.delete_definition(type, name, request.by, request.conditions.if_match):
            raise _nothing(type, name)
        return Answer(None, 204)


def _name(request: Request, type: DefinitionType) -> str:
    return request.path[type]


def _nothing(type: DefinitionType, name: str) -> NotFound:
    return NotFound(f"{type} {name!r} has no document: the defaults hold", what=type, id=name)


def _tag(document: Document) -> tuple[bytes, bytes]:
    return b"etag", f'"{document.etag}"'.encode()
