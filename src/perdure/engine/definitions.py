"""The documents that say how queues, kinds and the organization are treated: read, replaced and removed. Each has a tag
that names what it says, so that nobody overwrites what they have not seen.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from perdure import mistakes
from perdure.documents import convert
from perdure.domain import limits
from perdure.engine.kinds import Kinds, Names
from perdure.engine.quantities import check_count
from perdure.engine.requests import KindDefinition, Principal
from perdure.errors import Conflict, Invalid, NotFound, PreconditionFailed
from perdure.store.definitions import Definition, Definitions, DefinitionType
from perdure.store.wakeups import Topic, Wakeups

TYPES: tuple[DefinitionType, ...] = ("queue", "organization", "kind")
DEPTH_MAX = 2**53
PUT_TRIES = 10

ANY = "*"
"""Expects that there is a document, whatever it says."""
NONE = ""
"""Expects that there is none."""

_FLAGS = {"queue": ("paused", "dead_letters"), "organization": ("paused",)}


class Document(NamedTuple):
    """One document. `etag` is another one as soon as it says something else. `created`: it was not there before."""

    type: DefinitionType
    name: str
    etag: str
    value: dict[str, Any]
    created: bool = False


class Documents:
    """What operators do with documents. What one does not say is as the system's defaults."""

    def __init__(self, definitions: Definitions, kinds: Kinds, names: Names, wakeups: Wakeups) -> None:
        self._definitions = definitions
        self._kinds = kinds
        self._names = names
        self._wakeups = wakeups

    async def get(self, type: DefinitionType, name: str, by: Principal) -> Document | None:
        """The document, or `None`. Raises `NotFound` for another organization's."""
        self._check_name(type, name, by)
        stored = await self._definitions.get(by.organization, type, name)
        return None if stored is None else _document(stored)

    async def put(
        self, type: DefinitionType, name: str, value: Mapping[str, Any], by: Principal, expected: str | None = None
    ) -> Document:
        """Store a document, whole. With `expected`, only over that tag (or `ANY`, or `NONE`): else
        `PreconditionFailed`, with the tag that is there. Raises `Invalid` with the field, and stores nothing then.
        """
        self._check_name(type, name, by)
        text = msgspec.json.encode(self._checked(type, name, value)).decode()
        for tries_left in reversed(range(PUT_TRIES)):
            before = await self._definitions.get(by.organization, type, name)
            _check_expected(type, name, before, expected)
            version = before.version if before is not None else 0
            try:
                stored = await self._definitions.put(by.organization, type, name, text, by.name, expected=version)
            except Conflict:
                # Somebody was faster: what is there now decides.
                if not tries_left:
                    raise
            else:
                break
        await self._changed(type, by)
        return _document(stored)._replace(created=before is None)

    async def delete(self, type: DefinitionType, name: str, by: Principal, expected: str | None = None) -> bool:
        """Remove a document: the defaults hold again. False when there was none. `expected` as in `put`."""
        self._check_name(type, name, by)
        for tries_left in reversed(range(PUT_TRIES)):
            before = await self._definitions.get(by.organization, type, name)
            _check_expected(type, name, before, expected)
            if before is None:
                return False
            try:
                gone = await self._definitions.delete(by.organization, type, name, by.name, expected=before.version)
            except Conflict:
                if not tries_left:
                    raise
            else:
                break
        await self._changed(type, by)
        return gone

    def _check_name(self, type: DefinitionType, name: str, by: Principal) -> None:
        if type not in TYPES:
            raise Invalid(f"a definition is of a {', a '.join(TYPES)}, not of a {type!r}", field="type")
        if type == "organization":
            if name != by.organization:
                raise NotFound(f"there is no organization {name}", what="organization", id=name)
        else:
            (self._names.queue if type == "queue" else self._names.kind)(name)

    def _checked(self, type: DefinitionType, name: str, value: Mapping[str, Any]) -> Any:
        return self._checked_kind(name, value) if type == "kind" else checked_policy(type, value)

    def _checked_kind(self, name: str, value: Mapping[str, Any]) -> KindDefinition:
        if value.get("kind", name) != name:
            raise Invalid(f"this is the document of kind {name!r}, and says {value['kind']!r}", field="kind")
        unknown = sorted(value.keys() - set(KindDefinition.__struct_fields__))
        if unknown:
            raise Invalid(
                f"{unknown[0]}: {mistakes.unknown_field(unknown[0], KindDefinition.__struct_fields__)}",
                field=unknown[0],
            )
        definition = convert({**value, "kind": name}, KindDefinition, "document")
        self._kinds.check(definition)
        return definition

    async def _changed(self, type: DefinitionType, by: Principal) -> None:
        if type == "kind":
            await self._kinds.refresh(by.organization)
        self._wakeups.announce(Topic.READY | Topic.CONTROL)


def checked_policy(type: DefinitionType, value: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a queue or an organization. Raises `Invalid` with the field."""
    flags = _FLAGS[type]
    checked: dict[str, Any] = {}
    for field, said in value.items():
        if field in flags:
            if not isinstance(said, bool):
                raise Invalid(f"{field} must be true or false", field=field)
            checked[field] = said
        elif field in _QUANTITIES and (field != "weight" or type == "organization"):
            checked[field] = None if said is None else _QUANTITIES[field](said, field)
        else:
            known = [*flags, *(each for each in _QUANTITIES if each != "weight" or type == "organization")]
            raise Invalid(f"a {type} has no {field!r}; it has {', '.join(known)}", field=field)
    return checked


def _number(low: float, high: float) -> Callable[[Any, str], float]:
    def check(said: Any, field: str) -> float:
        if isinstance(said, bool) or not isinstance(said, int | float) or not low <= said <= high:
            raise Invalid(f"{field} must be a number from {low:.12g} to {high:.12g}", field=field)
        return said

    return check


_QUANTITIES: Mapping[str, Callable[[Any, str], float]] = {
    "depth": lambda said, field: check_count(said, field, 0, DEPTH_MAX),
    "concurrency": lambda said, field: check_count(said, field, 1, limits.LIMIT_MAX),
    "rate": lambda said, field: check_count(said, field, 1, limits.LIMIT_MAX),
    "per": _number(limits.seconds(limits.LIMIT_PER_MIN_US), limits.seconds(limits.LIMIT_PER_MAX_US)),
    "weight": _number(limits.WEIGHT_MIN, limits.WEIGHT_MAX),
}
"""The checks of what a policy counts; null is as if it was not said."""


def _document(stored: Definition) -> Document:
    return Document(stored.type, stored.name, _etag(stored), msgspec.json.decode(stored.document))


def _etag(stored: Definition) -> str:
    """The version, which never comes again, and what it says."""
    return f"{stored.version}-{blake2b(stored.document.encode(), digest_size=6).hexdigest()}"


def _check_expected(type: DefinitionType, name: str, stored: Definition | None, expected: str | None) -> None:
    if expected is None:
        return
    etag = None if stored is None else _etag(stored)
    if (etag is None) if expected == NONE else (etag is not None and expected in (ANY, etag)):
        return
    there = f"says something else now (etag {etag})" if etag is not None else "is not there"
    raise PreconditionFailed(
        f"the document of {type} {name!r} {there}: read it again, then decide", what=type, id=name, etag=etag
    )
