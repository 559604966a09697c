"""Statements that take a row's number still look at whose it is: the second wall between organizations."""

from typing import Any, NamedTuple

import pytest

from conformance.making import DONE, World, part
from perdure.domain.attempt import LogLine
from perdure.store.relational import job_views, task_views
from perdure.store.relational.transaction import Transaction, batch

MINE, OTHER = "default", "other"

BY_NUMBER: dict[str, dict[str, Any]] = {
    "view_parts": {},
    "view_logs": {"fence": 0, "sequence": 0, "count": 10},
    "view_job_tasks": {},
    "view_job_open": {},
    "view_sift": {
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
"""What each statement is asked besides the number."""


class Known(NamedTuple):
    """A store, and the numbers of its rows."""

    readers: Any
    tasks: list[int]
    job: int

    def asked(self, name: str) -> dict[str, Any]:
        """What the statement is asked for them."""
        numbers = {"n": self.tasks[0], "j": self.job, "ns": batch(self.tasks[:1])}
        number = "ns" if name == "view_sift" else "j" if name.startswith("view_job") else "n"
        return {number: numbers[number], **BY_NUMBER.get(name, {})}


@pytest.fixture
async def known(world: World) -> Known:
    """A store with one job of two tasks, the first of which has a part, a line of log and a result."""
    family = await world.submit_job({"a": [], "b": ["a"]})
    lease = await world.claim_one()
    await world.report(lease, part=part(1, final=True), logs=(LogLine(1, "info", "a line", 0),))
    await world.finish(lease, settlement=DONE)
    assert lease.hold.task_id == family["a"]
    readers = world.store.readers

    def numbers(tx: Transaction) -> tuple[list[int], int]:
        tasks = [tx.value("view_task_number", organization=MINE, task=family[name]) for name in ("a", "b")]
        return tasks, tx.value("view_job_number", organization=MINE, job=family.id)

    return Known(readers, *await readers.read(numbers))


async def test_cards_of_foreign_numbers_are_empty(known: Known) -> None:
    assert len(await known.readers.read(lambda tx: task_views.cards(tx, MINE, known.tasks))) == 2
    assert await known.readers.read(lambda tx: task_views.cards(tx, OTHER, known.tasks)) == []
    assert len(await known.readers.read(lambda tx: job_views.cards(tx, MINE, [known.job]))) == 1
    assert await known.readers.read(lambda tx: job_views.cards(tx, OTHER, [known.job])) == []


@pytest.mark.parametrize("name", sorted(BY_NUMBER))
async def test_foreign_numbers_answer_nothing(known: Known, name: str) -> None:
    asked = known.asked(name)
    assert await known.readers.read(lambda tx: tx.document(name, organization=MINE, **asked))
    assert not await known.readers.read(lambda tx: tx.document(name, organization=OTHER, **asked))


async def test_bodies_of_foreign_numbers_are_absent(known: Known) -> None:
    asked = known.asked("view_task_bodies")
    assert await known.readers.read(lambda tx: tx.document("view_task_bodies", organization=MINE, **asked))
    assert await known.readers.read(lambda tx: tx.document("view_task_bodies", organization=OTHER, **asked)) is None


async def test_lanes_of_another_organization_are_no_lanes(known: Known) -> None:
    asked = {"kinds": batch(["work"]), "queues": "[]"}
    assert await known.readers.read(lambda tx: tx.document("view_lanes_of", organization=MINE, **asked)) != []
    assert await known.readers.read(lambda tx: tx.document("view_lanes_of", organization=OTHER, **asked)) == []
