"""The protocol of a store's schema: which version it has and how it gets to the next one."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from perdure.errors import SchemaTooOld


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


def too_old(place: str, missing: Sequence[Migration], known: Sequence[Migration]) -> SchemaTooOld:
    """What a store that lacks steps is refused with: another sentence where it took none at all."""
    if len(missing) < len(known):
        return lacking(missing, "run `perdure db migrate`")
    return SchemaTooOld(
        f"{place} holds no perdure store yet: `perdure db migrate` makes one, or start a worker or submit to it",
        missing=[step.number for step in missing],
    )


def lacking(missing: Sequence[Migration], advice: str) -> SchemaTooOld:
    """The refusal of a schema that lacks steps."""
    numbers = [step.number for step in missing]
    return SchemaTooOld(f"the schema lacks step {numbers[0]} ({missing[0].name}): {advice}", missing=numbers)
