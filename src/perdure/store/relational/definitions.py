"""Versioned documents: queues, organizations, kinds."""

from typing import Any, NamedTuple

from perdure.errors import Conflict, PerdureError, StoreBusy
from perdure.store.definitions import Definition, DefinitionType
from perdure.store.relational import acts
from perdure.store.relational.operation import Operation, Writer
from perdure.store.relational.transaction import Transaction
from perdure.store.relational.views import Readers
from perdure.store.wakeups import Topic

ROUNDS_MAX = 12
"""How often a put begins again because another transaction came in between."""


class Put(NamedTuple):
    """A document to store, over version `expected` if that is given."""

    organization: str
    type: DefinitionType
    name: str
    document: str
    actor: str
    expected: int | None


class Delete(NamedTuple):
    """A document to remove, if it is at version `expected` where that is given."""

    organization: str
    type: DefinitionType
    name: str
    actor: str
    expected: int | None


def _get(tx: Transaction, organization: str, type: str, name: str) -> Definition | None:
    rows = tx.run("definition_get", organization=organization, type=type, name=name)
    return Definition(*rows[0]) if rows else None


def _put_all(tx: Transaction, puts: list[Put]) -> list[Any]:
    return [_put(tx, put) for put in puts]


def _put(tx: Transaction, put: Put) -> Definition | Conflict | StoreBusy:
    for _ in range(ROUNDS_MAX):
        answer = put_over_what_is_there(tx, put)
        if answer is not None:
            return answer
        # Another transaction has put a version of its own in between.
    return StoreBusy(
        f"others changed {put.type} {put.name!r} again and again: read it, then put it once more",
        what=put.type,
        id=put.name,
    )


def put_over_what_is_there(tx: Transaction, put: Put) -> Definition | Conflict | None:
    """One try of a put; `None` where another transaction came in between."""
    stored = _get(tx, put.organization, put.type, put.name)
    version = stored.version if stored is not None else 0
    if put.expected is not None and put.expected != version:
        return _another_version(put.type, put.name, version, put.expected)
    if stored is not None and stored.document == put.document and put.expected is None:
        return stored
    written = tx.value(
        "definition_put",
        organization=put.organization,
        type=put.type,
        name=put.name,
        document=put.document,
        actor=put.actor,
        version=version,
    )
    if written is None:
        return None
    tx.announce(Topic.CONTROL | Topic.READY)
    return Definition(put.organization, put.type, put.name, written, put.document)


def _delete_all(tx: Transaction, deletes: list[Delete]) -> list[Any]:
    return [delete(tx, each) for each in deletes]


def delete(tx: Transaction, each: Delete) -> bool | Conflict:
    """Remove one document; false when there was none."""
    place = {"organization": each.organization, "type": each.type, "name": each.name}
    if tx.value("definition_delete", **place, version=each.expected) is not None:
        removed = {"type": each.type, "name": each.name}
        acts.remember(tx, each.organization, "definition_deleted", each.actor, [removed])
        tx.announce(Topic.CONTROL | Topic.READY)
        return True
    stored = None if each.expected is None else _get(tx, each.organization, each.type, each.name)
    return False if stored is None else _another_version(each.type, each.name, stored.version, each.expected)


def _another_version(type: str, name: str, version: int, expected: int | None) -> Conflict:
    return Conflict(
        f"{type} {name!r} is at version {version}, not {expected}: read it again, then decide",
        what=type,
        id=name,
        version=version,
    )


PUT = Operation("put_definition", rank=0, apply=_put_all)
DELETE = Operation("delete_definition", rank=0, apply=_delete_all)


class RelationalDefinitions:
    """Meets `store.definitions.Definitions`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def get(self, organization: str, type: DefinitionType, name: str) -> Definition | None:
        """The document, or `None`."""
        return await self._readers.read(lambda tx: _get(tx, organization, type, name))

    async def list(self, organization: str, type: DefinitionType) -> list[Definition]:
        """All documents of a type, by name."""
        rows = await self._readers.read(lambda tx: tx.run("definition_list", organization=organization, type=type))
        return [Definition(*row) for row in rows]

    async def put(
        self,
        organization: str,
        type: DefinitionType,
        name: str,
        document: str,
        actor: str,
        expected: int | None = None,
    ) -> Definition:
        """Store a document; an unconditional put of what is there already changes nothing.

        Raises `Conflict`, and `StoreBusy` when others put versions of theirs all the time.
        """
        put = Put(organization, type, name, document, actor, expected)
        (answer,) = await self._writer.gather(PUT, [put])
        if isinstance(answer, PerdureError):
            raise answer
        stored: Definition = answer
        return stored

    async def delete(
        self, organization: str, type: DefinitionType, name: str, actor: str, expected: int | None = None
    ) -> bool:
        """Remove a document; false when there was none. Raises `Conflict`."""
        (answer,) = await self._writer.gather(DELETE, [Delete(organization, type, name, actor, expected)])
        if isinstance(answer, Conflict):
            raise answer
        return bool(answer)
