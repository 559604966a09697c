"""The protocol of versioned documents: queues, organizations, kinds, schedules."""

from typing import Literal, NamedTuple, Protocol

DefinitionType = Literal["queue", "organization", "kind", "schedule"]


class Definition(NamedTuple):
    """One document. `version` grows with each put, also over a delete: no two documents of a name share one."""

    organization: str
    type: DefinitionType
    name: str
    version: int
    document: str
    """JSON."""


class Definitions(Protocol):
    """Documents by (organization, type, name). Each call is one transaction."""

    async def get(self, organization: str, type: DefinitionType, name: str) -> Definition | None:
        """The document, or `None`."""

    async def list(self, organization: str, type: DefinitionType) -> list[Definition]:
        """All documents of a type, by name."""

    async def put(
        self,
        organization: str,
        type: DefinitionType,
        name: str,
        document: str,
        actor: str,
        expected: int | None = None,
    ) -> Definition:
        """Store a document. With `expected`, only over that version (0: only if there is none). Raises `Conflict`.

        A claim that begins after this returns sees it.
        """

    async def delete(
        self, organization: str, type: DefinitionType, name: str, actor: str, expected: int | None = None
    ) -> bool:
        """Remove a document; false when there was none. With `expected`, only that version. Raises `Conflict`.

        Who did is kept for `limits.ACTS_KEPT_US`.
        """
