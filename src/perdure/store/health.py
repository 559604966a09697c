"""What a look at a store finds. Looking changes nothing: no step of the schema is taken, no file is made."""

from typing import NamedTuple

from perdure.store.copying import unfinished

CLOCK_DIFFERENCE_MAX_SECONDS = 2.0
"""Instants that people give and read are by their own clocks: a larger difference to the store's misleads them."""


class Fact(NamedTuple):
    """One thing that was looked at. The name ends in the unit: `_bytes`, `_seconds`."""

    name: str
    value: str | int | float | bool | None
    """`None`: it cannot be known here."""
    warning: str | None = None
    """What is wrong with it, and what to do."""


class TableHealth(NamedTuple):
    """One table, as far as its store counts."""

    name: str
    rows: int
    dead_rows: int
    """Versions that nobody can see and that still take room."""
    size_bytes: int
    vacuumed_us: int | None
    analyzed_us: int | None
    warning: str | None = None


class Health(NamedTuple):
    """Everything that was found."""

    store: str
    facts: tuple[Fact, ...]
    tables: tuple[TableHealth, ...] = ()

    def warnings(self) -> list[tuple[str, str]]:
        """The name of each thing that is not as it should be, and what to do about it."""
        found = [(fact.name, fact.warning) for fact in self.facts]
        found += [(table.name, table.warning) for table in self.tables]
        return [(name, warning) for name, warning in found if warning is not None]


def clock_difference(seconds: float | None) -> Fact:
    """How far the store's time is ahead of this process's clock."""
    warning = None
    if seconds is not None and abs(seconds) > CLOCK_DIFFERENCE_MAX_SECONDS:
        warning = (
            f"the store's time is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} this machine's clock: "
            "set the clocks by NTP; instants such as run_at are judged by the store's"
        )
    return Fact("clock_difference_seconds", None if seconds is None else round(seconds, 3) + 0.0, warning)


def copying_from(place: str, origin: str | None) -> Fact:
    """Whether only a part of another store has been copied to this one."""
    return Fact("copying_from", origin, None if origin is None else unfinished(place, origin).message)


def missing_steps(names: list[str]) -> Fact:
    """The steps of the schema that the store lacks."""
    warning = f"the schema lacks {', '.join(names)}: run `perdure db migrate`" if names else None
    return Fact("schema_steps_missing", len(names), warning)
