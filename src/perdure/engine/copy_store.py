"""Copy a store into another one, of whatever sort: a paused and drained one into an empty one, compared row by row."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from perdure.errors import Conflict, invariant
from perdure.store.copying import LIVE, NOT_COPIED, TABLES, Row, Rows, Table

PAGES_A_COMMIT = 20
"""How many pages are written in one transaction."""


class Copied(NamedTuple):
    """What both stores have of one table."""

    table: str
    rows: int
    sha256: str
    """Of all its rows in the order of their keys."""


def copy_store(source: Rows, target: Rows, tell: Callable[[str], None] = lambda text: None) -> list[Copied]:
    """Copy all rows and compare both stores. A copy that was interrupted goes on where it stopped.

    Nothing of it can be claimed before all of it is there. Raises `Conflict` where the source has live attempts or is
    written to meanwhile, and where the destination has rows of another origin.
    """
    columns = _columns(source, target)
    _check_idle(source)
    _claim_target(source, target)
    with source.snapshot():
        for table in TABLES:
            if table is not LIVE:
                tell(f"copying {table.name}")
                _copy(source, target, table, columns[table.name])
    with target.transaction():
        # As of now, for what was written to the source since would be left behind: it shows as a difference.
        with source.snapshot():
            tell(f"copying {LIVE.name}")
            for page in _pages(source, LIVE, columns[LIVE.name]):
                target.write(LIVE, columns[LIVE.name], page)
            target.finish()
            tell("comparing")
            copied = [_summary(target, table, columns[table.name]) for table in TABLES]
            _compare(source, copied, columns)
        _check_idle(source)
        _check_last(source, target)
    return copied


def _columns(source: Rows, target: Rows) -> dict[str, tuple[str, ...]]:
    known = {table.name for table in TABLES} | {*NOT_COPIED}
    for rows in (source, target):
        invariant(rows.tables() <= known, f"a copy knows every table of {rows.place}")
    columns = {}
    for table in TABLES:
        ours, theirs = source.columns(table), target.columns(table)
        invariant(ours == theirs, f"both stores have the same columns of {table.name}")
        columns[table.name] = tuple(sorted(ours))
    return columns


def _check_idle(source: Rows) -> None:
    if source.origin() is not None:
        raise Conflict(
            f"{source.place} is itself a copy that is not complete: finish that copy, or copy from {source.origin()}"
        )
    held = source.held()
    if held:
        raise Conflict(
            f"{held} {'task is' if held == 1 else 'tasks are'} being worked on in {source.place}: pause its queues, "
            "let the workers finish (`perdure worker drain`) and copy then",
            held=held,
        )


def _claim_target(source: Rows, target: Rows) -> None:
    """Note the origin in an empty destination; go on with a copy of the same origin."""
    with target.transaction():
        origin = target.origin()
        if origin is None:
            filled = [table.name for table in TABLES if target.greatest(table) is not None]
            if filled:
                raise Conflict(
                    f"{target.place} is not empty (it has {', '.join(filled)}): copy to a store that nobody has used",
                    tables=filled,
                )
            target.begin(source.place)
        elif origin != source.place:
            raise Conflict(
                f"{target.place} has an unfinished copy of {origin}: finish that one, or name an empty store",
                origin=origin,
            )


def _copy(source: Rows, target: Rows, table: Table, columns: Sequence[str]) -> None:
    """Copy the rows after those that are there already, some pages at a time for good."""
    pages = _pages(source, table, columns, after=target.greatest(table))
    more = True
    while more:
        more = False
        with target.transaction():
            for page in islice(pages, PAGES_A_COMMIT):
                target.write(table, columns, page)
                more = True


def _pages(rows: Rows, table: Table, columns: Sequence[str], after: Row | None = None) -> Iterator[list[Row]]:
    places = [columns.index(column) for column in table.key]
    while page := rows.page(table, columns, after):
        yield page
        after = tuple(page[-1][place] for place in places)


def _summary(rows: Rows, table: Table, columns: Sequence[str]) -> Copied:
    count, digest = 0, hashlib.sha256()
    for page in _pages(rows, table, columns):
        count += len(page)
        for row in page:
            digest.update(msgspec.msgpack.encode(row))
    return Copied(table.name, count, digest.hexdigest())


def _compare(source: Rows, copied: Sequence[Copied], columns: dict[str, tuple[str, ...]]) -> None:
    for table, there in zip(TABLES, copied, strict=True):
        here = _summary(source, table, columns[table.name])
        if here != there:
            raise _differ(source, table, source_rows=here.rows, copied_rows=there.rows)


def _check_last(source: Rows, target: Rows) -> None:
    """A last look at the source: whatever happens in it leaves a row at an end."""
    for table in TABLES:
        if source.greatest(table) != target.greatest(table):
            raise _differ(source, table)


def _differ(source: Rows, table: Table, **facts: int) -> Conflict:
    return Conflict(
        f"the {table.name} in {source.place} and in the copy differ: stop whatever writes to the source, "
        "and copy again to an empty store",
        table=table.name,
        **facts,
    )
