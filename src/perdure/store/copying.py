"""The protocol of copying: all rows of a store, table by table, as every SQL store can read and write them.

A row is a tuple of numbers, text and bytes: a truth is 0 or 1, a document is its JSON text. Not copied are what a store
counts or notes for itself: those it makes anew from the rows.
"""

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from perdure.errors import UnfinishedCopy

Row = tuple[Any, ...]
Key = tuple[Any, ...]

_PLACE_OF_A_SERVER = "PostgreSQL at "

PREFIX = "perdure_"
"""Before the name of every table."""


class Table(NamedTuple):
    """A table, its primary key, and how many rows are read and written at a time."""

    name: str
    key: tuple[str, ...]
    page_rows: int = 500


LIVE = Table("live", ("n",))
"""Comes last: from then on the copied tasks can be claimed."""

TABLES = (
    Table("definitions", ("organization", "type", "name")),
    Table("workers", ("id",)),
    Table("lanes", ("lane",)),
    Table("jobs", ("j",)),
    Table("tasks", ("n",), 50),
    Table("edges", ("parent", "child")),
    Table("ends", ("n",), 50),
    Table("results_removed", ("lane", "state")),
    Table("attempts", ("n", "fence")),
    Table("events", ("e",)),
    Table("frontier", ("n",)),
    Table("progress", ("n",)),
    Table("checkpoints", ("n",), 100),
    Table("parts", ("n", "attempt_id", "sequence"), 20),
    Table("receipts", ("n", "attempt_id"), 50),
    Table("items", ("n", "attempt_id", "ref")),
    Table("logs", ("n", "fence", "sequence")),
    Table("schedules", ("organization", "name")),
    Table("fires", ("organization", "schedule", "instant_us")),
    Table("skips", ("organization", "schedule", "first_us")),
    Table("idempotency", ("organization", "principal", "what", "key")),
    Table("unique_keys", ("organization", "key")),
    Table("breakers", ("organization", "kind")),
    Table("gates", ("gate",)),
    Table("slots", ("gate", "n", "taken_us")),
    LIVE,
)
"""In an order in which nothing names what is not there yet. Pages of large bodies are small."""

NOT_COPIED = ("meta", "migrations", "counts", "count_changes", "outcomes")
"""Tables that a store keeps for itself."""


class Rows(Protocol):
    """A store's rows, on a connection of its own, from one thread."""

    place: str
    """Where the store is, for people: without a password."""

    def tables(self) -> set[str]:
        """The names of all tables, without `PREFIX`."""

    def columns(self, table: Table) -> set[str]:
        """The columns that every store has."""

    def snapshot(self) -> AbstractContextManager[object]:
        """What is read inside is as of one moment."""

    def transaction(self) -> AbstractContextManager[object]:
        """What is written inside is there together, or not at all."""

    def page(self, table: Table, columns: Sequence[str], after: Key | None) -> list[Row]:
        """The rows after a key (`None`: the first ones), in the order of keys, at most `table.page_rows`."""

    def write(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Store rows."""

    def greatest(self, table: Table) -> Key | None:
        """The last key; `None` where there are no rows."""

    def held(self) -> int:
        """How many tasks have a live attempt."""

    def origin(self) -> str | None:
        """Where the rows come from that are being copied to this store; `None` when none are."""

    def begin(self, origin: str) -> None:
        """Note where rows come from, until `finish`."""

    def finish(self) -> None:
        """Count the rows, let new numbers and places in line begin above the copied ones, and forget the origin."""

    def close(self) -> None:
        """Let go of the connection."""


def unfinished(place: str, origin: str) -> UnfinishedCopy:
    """The refusal of a store to which only a part of another has been copied."""
    command = f"perdure db copy {_url_of(origin)} {_url_of(place)}"
    users = " (with your user of the server)" if _PLACE_OF_A_SERVER in origin + place else ""
    return UnfinishedCopy(
        f"{place} is a copy of {origin} that is not complete: go on with it by `{command}`{users}, or remove it",
        store=place,
        origin=origin,
        command=command,
    )


def _url_of(place: str) -> str:
    """What names a place on the command line."""
    if place.startswith(_PLACE_OF_A_SERVER):
        return shlex.quote(f"postgresql://{place.removeprefix(_PLACE_OF_A_SERVER)}")
    return shlex.quote(place)
