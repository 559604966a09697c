"""The protocol of a store's schema: which version it has and how it gets to the next one."""

from typing import NamedTuple, Protocol


class Migration(NamedTuple):
    """One numbered step. `applied_us` is when this store took it; `None` while it has not."""

    number: int
    name: str
    sql: str
    applied_us: int | None = None


class Schema(Protocol):
    """Migrations are numbered, plain and re-runnable; two processes that migrate at once are harmless."""

    async def status(self) -> list[Migration]:
        """Every known step in order."""

    async def migrate(self) -> list[Migration]:
        """Take the steps that are missing, each in one transaction, and return them. Raises `SchemaTooNew`."""
