"""Ids from outside are checked before a store is asked."""

import pytest

from perdure.ambient import Ids, SystemClock
from perdure.domain.ids import parse
from perdure.errors import Malformed

GOOD = "0198c5a4-7f3e-7abc-8def-0123456789ab"


def test_an_id_comes_back_in_its_one_form() -> None:
    assert parse(GOOD) == GOOD
    assert parse(GOOD.upper()) == GOOD


@pytest.mark.parametrize(
    "bad",
    ["", "x", GOOD[:-1], GOOD + "0", GOOD + "\n", " " + GOOD, GOOD.replace("-", ""), "g" * 36, None, 7, b"x", "ا" * 36],
)
def test_anything_else_is_malformed(bad: object) -> None:
    with pytest.raises(Malformed, match="job"):
        parse(bad, "job")


def test_a_part_of_an_id_is_told_to_be_one() -> None:
    for part in (GOOD[:8], GOOD[:9], GOOD[-12:], GOOD[:-1].upper()):
        with pytest.raises(Malformed, match="only a part of the id of a job: give all 36 characters"):
            parse(part, "job")
    for other in ("cafe-latte", "abc", "-" * 20, GOOD + "0"):
        with pytest.raises(Malformed, match="is not the id of a job"):
            parse(other, "job")


def test_a_hostile_id_is_cut_in_the_message() -> None:
    with pytest.raises(Malformed) as caught:
        parse("x" * 100_000)
    assert len(caught.value.message) < 300


def test_new_ids_ascend_and_parse() -> None:
    ids = Ids(SystemClock())
    made = [ids.new() for _ in range(10_000)]
    assert made == sorted(set(made))
    assert parse(made[0]) == made[0]
