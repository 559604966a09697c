"""Statements that take a row's number still look at whose it is: the second wall between organizations."""

from typing import Any

import pytest

from conformance.making import DONE, World, part
from perdure.domain.attempt import LogLine
from perdure.store.relational import job_views, task_views
from perdure.store.relational.transaction import batch

MINE, OTHER = "default", "other"

BY_NUMBER: dict[str, dict[str, Any]] = {
    "view_parts": {"n": 1},
    "view_logs": {"n": 1, "fence": 0, "sequence": 0, "count": 10},
    "view_job_tasks": {"j": 1},
    "view_job_open": {"j": 1},
    "view_sift": {
        "ns": "[1]",
        "states": "[]",
        "lanes": None,
        "reasons": "[]",
        "discarded": None,
        "labels": "[]",
        "submitters": "[]",
        "ended_from": None,
        "ended_before": None,
    },
}


@pytest.fixture
async def store(world: World) -> Any:
    """A store with one job of two tasks, the first of which has a part, a line of log and a result."""
    family = await world.submit_job({"a": [], "b": ["a"]})
    lease = await world.claim_one()
    await world.report(lease, part=part(1, final=True), logs=(LogLine(1, "info", "a line", 0),))
    await world.finish(lease, settlement=DONE)
    assert lease.hold.task_id == family["a"]
    return world.store


async def test_cards_of_foreign_numbers_are_empty(store: Any) -> None:
    assert len(await store.readers.read(lambda tx: task_views.cards(tx, MINE, [1, 2]))) == 2
    assert await store.readers.read(lambda tx: task_views.cards(tx, OTHER, [1, 2])) == []
    assert len(await store.readers.read(lambda tx: job_views.cards(tx, MINE, [1]))) == 1
    assert await store.readers.read(lambda tx: job_views.cards(tx, OTHER, [1])) == []


@pytest.mark.parametrize("name", sorted(BY_NUMBER))
async def test_foreign_numbers_answer_nothing(store: Any, name: str) -> None:
    assert await store.readers.read(lambda tx: tx.document(name, organization=MINE, **BY_NUMBER[name]))
    assert not await store.readers.read(lambda tx: tx.document(name, organization=OTHER, **BY_NUMBER[name]))


async def test_bodies_of_foreign_numbers_are_absent(store: Any) -> None:
    assert await store.readers.read(lambda tx: tx.document("view_task_bodies", organization=MINE, n=1))
    assert await store.readers.read(lambda tx: tx.document("view_task_bodies", organization=OTHER, n=1)) is None


async def test_lanes_of_another_organization_are_no_lanes(store: Any) -> None:
    asked = {"kinds": batch(["work"]), "queues": "[]"}
    assert await store.readers.read(lambda tx: tx.document("view_lanes_of", organization=MINE, **asked)) == [1]
    assert await store.readers.read(lambda tx: tx.document("view_lanes_of", organization=OTHER, **asked)) == []
