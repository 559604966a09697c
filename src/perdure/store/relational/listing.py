"""Lists, page by page: a walk along one index in stretches, a filter over each stretch, a cursor to go on from."""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.states import ENDED, HELD, UNFINISHED, JobState, TaskState
from perdure.errors import Invalid
from perdure.store.relational import cursors, job_views, task_views
from perdure.store.relational.both_ways import OLDEST_FIRST
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.sort import Sort
from perdure.store.views import Page, TaskFilter

STRETCH_ROWS = 1_000
"""How many rows a filtered list looks at before it counts what it has found."""
BEYOND = 2**63 - 1
"""A number above every row's."""
BEYOND_ID = "~"
"""A text above every id; the empty one is below."""

_IDLE = frozenset({TaskState.PENDING, TaskState.RETRYING})


class TaskListing:
    """One page of a list of tasks.

    The order follows from the filter: a job's tasks by number, ended ones by their end, unfinished ones by number, and
    tasks in any state by id (ids ascend with time).
    """

    def __init__(self, organization: str, where: TaskFilter, limit: int, cursor: str | None, sort: Sort) -> None:
        self._organization = organization
        self._where = where
        self._sort = sort
        self._limit = page_rows(limit)
        self._states = _states_that_match(where)
        self._impossible = bool(where.states) and not self._states
        self._order = _order(where, self._states)
        self._list = cursors.fingerprint(organization, where, sort)
        self._start = self._begin(cursor)

    def read(self, tx: Transaction) -> Page:
        """The page. It looks at no more than `limits.LIST_SCAN_MAX_ROWS` rows, so it may be short and have a next."""
        where = self._where
        if self._impossible:
            return Page([], None)
        lanes = None
        if where.kinds or where.queues:
            lanes = tx.value(
                "view_lanes_of", organization=self._organization, kinds=batch(where.kinds), queues=batch(where.queues)
            )
        stretch = STRETCH_ROWS if self._sifts() else self._limit + 1
        found: list[tuple[int, list[Any]]] = []
        looked, more, before = 0, True, self._start
        while more and len(found) <= self._limit and looked < limits.LIST_SCAN_MAX_ROWS:
            stretch = min(stretch, limits.LIST_SCAN_MAX_ROWS - looked)
            rows = self._walk(tx, before, stretch)
            more = len(rows) == stretch
            looked += len(rows)
            if rows:
                before = rows[-1][1:]
                more = more and not self._is_past(before)
            passed = self._sift(tx, [row[0] for row in rows], lanes)
            found.extend((row[0], row[1:]) for row in rows if row[0] in passed)
        return self._page(tx, found, before if more else None)

    def _page(self, tx: Transaction, found: list[tuple[int, list[Any]]], edge: list[Any] | None) -> Page:
        shown = found[: self._limit]
        rows = task_views.cards(tx, self._organization, [n for n, _ in shown])
        if len(found) > self._limit:
            return Page(rows, cursors.write(self._order, self._list, shown[-1][1]))
        return Page(rows, cursors.write(self._order, self._list, edge) if edge is not None else None)

    def _walk(self, tx: Transaction, before: list[Any], stretch: int) -> list[list[Any]]:
        """The next rows of the order's index: number (none if it is another organization's), then position."""
        bindings: dict[str, Any] = {"organization": self._organization, "stretch": stretch, "before": before[-1]}
        if self._order == "ended":
            bindings["before_us"] = before[0]
        if self._order in ("ended", "waiting"):
            bindings["states"] = batch(self._states)
        if self._order == "job":
            bindings["job"] = self._where.job
        rows: list[list[Any]] = tx.document(_walk(self._order, self._sort), **bindings)
        return rows

    def _is_past(self, position: list[Any]) -> bool:
        """Whether everything from here on ended too long ago, or too late where the oldest come first."""
        if self._order != "ended":
            return False
        from_us, before_us = self._where.ended_from_us, self._where.ended_before_us
        if self._sort is Sort.OLDEST:
            return before_us is not None and position[0] >= before_us
        return from_us is not None and position[0] < from_us

    def _sift(self, tx: Transaction, numbers: list[int | None], lanes: str | None) -> set[int]:
        """The numbers that the filter lets through."""
        own = [n for n in numbers if n is not None]
        if not own or not self._sifts():
            return set(own)
        where = self._where
        return set(
            tx.document(
                "view_sift",
                organization=self._organization,
                ns=batch(own),
                states=batch(self._states),
                lanes=lanes,
                reasons=batch(where.reasons),
                discarded=where.discarded,
                labels=batch(where.labels),
                submitters=batch(where.submitters),
                ended_from=where.ended_from_us,
                ended_before=where.ended_before_us,
            )
        )

    def _sifts(self) -> bool:
        """Whether the walk alone may find what the filter does not let through."""
        where = self._where
        if where.kinds or where.queues or where.labels or where.reasons or where.discarded is not None:
            return True
        if where.submitters or _ended_between(where):
            return True
        match self._order:
            case "ended" | "waiting":
                return False
            case "live":
                return True
            case "held":
                return frozenset(self._states) != HELD
            case _:
                return bool(self._states)

    def _begin(self, cursor: str | None) -> list[Any]:
        shapes: dict[str, Any] = {"ended": tuple[int, int], "any": tuple[str]}
        if cursor is None:
            return self._oldest() if self._sort is Sort.OLDEST else self._newest()
        return list(cursors.read(cursor, self._order, self._list, shapes.get(self._order, tuple[int])))

    def _newest(self) -> list[Any]:
        """The position before which all rows are. Whatever ended at `ended_before_us` itself or later is not walked."""
        if self._order == "ended":
            until_us = self._where.ended_before_us
            return [BEYOND, BEYOND] if until_us is None else [until_us, -BEYOND]
        return [BEYOND_ID] if self._order == "any" else [BEYOND]

    def _oldest(self) -> list[Any]:
        """The position behind which all rows are."""
        if self._order == "ended":
            return [self._where.ended_from_us or 0, -BEYOND]
        return [""] if self._order == "any" else [-BEYOND]


class JobListing:
    """One page of a list of jobs, by their submits."""

    def __init__(
        self, organization: str, states: Sequence[JobState], limit: int, cursor: str | None, sort: Sort
    ) -> None:
        self._organization = organization
        self._states = tuple(states) or tuple(JobState)
        self._limit = page_rows(limit)
        self._sort = sort
        self._list = cursors.fingerprint(organization, sorted(self._states), sort)
        start = -BEYOND if sort is Sort.OLDEST else BEYOND
        self._before = start if cursor is None else cursors.read(cursor, "jobs", self._list, int)

    def read(self, tx: Transaction) -> Page:
        """The page."""
        numbers: list[int] = tx.document(
            _walk("jobs", self._sort),
            organization=self._organization,
            states=batch(self._states),
            before=self._before,
            stretch=self._limit + 1,
        )
        shown = numbers[: self._limit]
        rows = job_views.cards(tx, self._organization, shown)
        more = len(numbers) > self._limit
        return Page(rows, cursors.write("jobs", self._list, shown[-1]) if more else None)


def _walk(order: str, sort: Sort) -> str:
    return f"view_walk_{order}" + (OLDEST_FIRST if sort is Sort.OLDEST else "")


def page_rows(limit: int) -> int:
    """How many rows a page has at most. Raises `Invalid` for less than one."""
    if limit < 1:
        raise Invalid(f"a page has at least 1 row, not {limit}", field="limit")
    return min(limit, limits.LIST_MAX_ROWS)


def _states_that_match(where: TaskFilter) -> tuple[TaskState, ...]:
    """The states that the filter lets through, or none for all: only what has ended has a reason or is discarded."""
    ended_only = bool(where.reasons) or where.discarded is True or _ended_between(where)
    if not ended_only:
        return where.states
    return tuple(state for state in where.states or sorted(ENDED) if state in ENDED)


def _ended_between(where: TaskFilter) -> bool:
    return where.ended_from_us is not None or where.ended_before_us is not None


def _order(where: TaskFilter, states: tuple[TaskState, ...]) -> str:
    """The index to walk along."""
    asked = frozenset(states)
    if where.job is not None:
        return "job"
    if not asked:
        return "any"
    if asked <= ENDED:
        return "ended"
    if asked <= _IDLE:
        return "waiting"
    if asked <= HELD:
        return "held"
    return "live" if asked <= UNFINISHED else "any"
