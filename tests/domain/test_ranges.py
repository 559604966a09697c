"""The ranges of what can be chosen: one table, which everybody who takes settings goes by."""

import math
from dataclasses import fields
from typing import Any

import pytest

from perdure.domain.ranges import RANGES, Range
from perdure.engine.engine_settings import EngineSettings
from perdure.errors import Invalid
from perdure.settings import Settings
from perdure.worker.worker_settings import WorkerSettings

TAKERS = (Settings, EngineSettings, WorkerSettings)
RANGED = [(taker, each.name) for taker in TAKERS for each in fields(taker) if each.name in RANGES]


def _said(name: str, number: float) -> Any:
    value = int(number) if RANGES[name].unit != "s" else number
    return {"failed": value} if name == "retention_by_state" else value


@pytest.mark.parametrize(("taker", "name"), RANGED, ids=lambda value: getattr(value, "__name__", value))
def test_both_ends_of_a_range_are_taken_and_what_is_beyond_them_is_refused_by_name(taker: Any, name: str) -> None:
    low, high = RANGES[name].low, RANGES[name].high
    step = 1 if RANGES[name].unit != "s" else 0.0001
    for number in (low, high):
        assert getattr(taker(**{name: _said(name, number)}), name) == _said(name, number)
    for number in (low - step, high + step):
        with pytest.raises(Invalid) as refused:
            taker(**{name: _said(name, number)})
        assert refused.value.field.startswith(name)


def test_every_range_is_the_range_of_some_setting() -> None:
    assert {name for _, name in RANGED} == set(RANGES)


def test_every_number_that_can_be_chosen_has_a_range() -> None:
    numbers = {int, float, int | None, float | None}
    unbounded = [
        f"{taker.__name__}.{each.name}"
        for taker in TAKERS
        for each in fields(taker)
        if each.type in numbers and each.name not in RANGES
    ]
    assert not unbounded


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "5", None])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(Invalid, match=r"^setting pause must be 0 to 9 s, not "):
        Range(0, 9).check("pause", value)


def test_what_is_counted_is_a_whole_number() -> None:
    with pytest.raises(Invalid, match=r"^setting width must be 1 to 9 tasks, not 2\.0$"):
        Range(1, 9, "tasks").check("width", 2.0)
