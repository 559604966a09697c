"""A statement that walks both ways is turned round in its order and in what it walks behind, or not loaded at all."""

import pytest

from perdure.errors import InvariantBroken
from perdure.store.relational.both_ways import HEADER, OLDEST_FIRST, with_both_ways


@pytest.mark.parametrize("before", [":before", "%(before)s", "(:before_us, :before)", "(%(before_us)s, %(before)s)"])
def test_the_order_and_the_comparison_are_turned(before: str) -> None:
    newest = f"{HEADER}\nSELECT n FROM t WHERE n < {before} AND k < :other ORDER BY n DESC"
    oldest = f"{HEADER}\nSELECT n FROM t WHERE n > {before} AND k < :other ORDER BY n ASC"
    assert [*with_both_ways([("walk", newest)])] == [("walk", newest), ("walk" + OLDEST_FIRST, oldest)]


@pytest.mark.parametrize(
    "walk", ["n < :before ORDER BY n", "n <= :before ORDER BY n DESC", "n < :after ORDER BY n DESC"]
)
def test_half_a_turn_is_refused(walk: str) -> None:
    with pytest.raises(InvariantBroken):
        [*with_both_ways([("walk", f"{HEADER}\nSELECT n FROM t WHERE {walk}")])]


def test_what_walks_one_way_stays_as_it_is() -> None:
    assert [*with_both_ways([("walk", "SELECT n FROM t")])] == [("walk", "SELECT n FROM t")]
