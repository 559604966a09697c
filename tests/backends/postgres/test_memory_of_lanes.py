"""What a process remembers of lanes goes when they go."""

from typing import Any

from backends.postgres.conftest import NOW_US
from perdure.store.postgres.grants import LOAD_ALL_US, Catalogue, Grants
from perdure.store.postgres.marks import FRONT, LAST, LINE, Marks
from perdure.store.relational.lanes import TRUSTED_US, Lanes

ANYBODY = Grants('["work"]', '["default"]', "[]", "[]", None)


class HandClock:
    """Time goes on by hand."""

    now_us = 0

    def monotonic_us(self) -> int:
        return self.now_us


class Answering:
    """A transaction whose lanes are what a test says."""

    def __init__(self) -> None:
        self.now_us = NOW_US
        self.lanes: list[int] = []
        self.asked = 0

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        return [(n, "default", "default", "work", "[]", 4) for n in self.lanes if n > bindings["above"]]

    def document(self, name: str, /, **bindings: Any) -> Any:
        self.asked += 1
        return [(n, "default", "default", "work", [], 4) for n in self.lanes]


def test_marks_of_lanes_that_have_gone_are_dropped() -> None:
    clock, tx = HandClock(), Answering()
    marks = Marks(clock)  # type: ignore[arg-type]
    catalogue = Catalogue(clock, marks.keep_only)  # type: ignore[arg-type]
    tx.lanes = [1, 2]
    catalogue.fitting(tx, ANYBODY, 2)  # type: ignore[arg-type]
    marks.advance([(1, 5), (2, 6), (2, -6)])
    clock.now_us += LOAD_ALL_US
    tx.lanes = [1]
    catalogue.fitting(tx, ANYBODY, 1)  # type: ignore[arg-type]
    assert marks.stretches(1) == ((1, FRONT, LINE - 1), (1, 6, LAST))
    assert marks.stretches(2) == ((2, FRONT, LINE - 1), (2, LINE, LAST))


def test_what_numbers_stand_for_is_asked_anew_when_numbers_are_not_trusted_any_more() -> None:
    lanes, tx = Lanes(), Answering()
    tx.lanes = [7]
    described = [lanes.describe(tx, [7]) for _ in range(2)]  # type: ignore[arg-type]
    assert tx.asked == 1
    tx.now_us += TRUSTED_US
    assert lanes.describe(tx, [7]) == described[0] == described[1]  # type: ignore[arg-type]
    assert tx.asked == 2
