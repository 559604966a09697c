"""Limits say one thing each, within bounds, and become gates that tasks of the same key share."""

from typing import Any

import pytest

from perdure.domain.gate import GateSort, WhenFull
from perdure.domain.limit import Limit, check_limits, gates_of
from perdure.errors import Invalid


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({}, "limits"),
        ({"concurrency": 1, "ordered": True}, "limits"),
        ({"concurrency": 1, "rate": 1, "per": 1}, "limits"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"concurrency": 10**9}, "concurrency"),
        ({"rate": 1.5, "per": 1}, "rate"),
        ({"rate": 1}, "per"),
        ({"concurrency": 1, "per": 1}, "per"),
        ({"rate": 1, "per": 0}, "per"),
        ({"rate": 1, "per": "1"}, "per"),
        ({"ordered": True, "by": 5}, "by"),
        ({"ordered": True, "by": ("a", "a")}, "by"),
        ({"ordered": True, "by": ("",)}, "by"),
        ({"ordered": True, "by": "a\0"}, "by"),
        ({"ordered": True, "by": "\ud800"}, "by"),
        ({"ordered": True, "by": "ä" * 64 + "b"}, "by"),
        ({"ordered": True, "by": tuple("abcdefghi")}, "by"),
        ({"rate": 1, "per": 1, "when_full": "cancel_newest"}, "when_full"),
        ({"concurrency": 1, "when_full": "panic"}, "when_full"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(said: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        Limit(**said)
    assert refused.value.fields["field"] == field


def test_the_same_limit_twice_is_refused() -> None:
    with pytest.raises(Invalid, match="concurrency by customer twice"):
        check_limits([Limit(concurrency=1, by="customer"), Limit(concurrency=2, by=("customer",))])


def test_a_task_passes_its_order_first_and_its_rate_last() -> None:
    limits = [
        Limit(rate=5, per=2),
        Limit(concurrency=3, by="a", when_full="cancel_newest"),
        Limit(ordered=True, by="b"),
    ]
    gates = gates_of("work", limits, ["", "1", "2"])
    assert [(gate.sort, gate.name, gate.key, gate.slots, gate.per_us, gate.when_full) for gate in gates] == [
        (GateSort.ORDER, "work by b", "2", 1, None, WhenFull.QUEUE),
        (GateSort.CONCURRENCY, "work by a", "1", 3, None, WhenFull.CANCEL_NEWEST),
        (GateSort.RATE, "work", "", 5, 2_000_000, WhenFull.QUEUE),
    ]
