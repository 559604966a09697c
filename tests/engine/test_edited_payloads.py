"""Dead letters that run again with another payload: unique keys and gates by fields of it are made anew."""

from typing import Any

import pytest

from engine.making import KIND, ME, Bench
from perdure.domain.limit import Limit
from perdure.domain.outcome import Failed, Failure
from perdure.domain.states import TaskState
from perdure.domain.unique import Unique
from perdure.engine.requests import KindDefinition
from perdure.errors import PerdureError, UniqueConflict

FATAL = Failed(Failure("ValueError", "fatal"), permanent=True)
BY_CUSTOMER = Unique(by="customer")
ACME, OTHER = {"customer": "acme"}, {"customer": "other"}


async def declare(bench: Bench, **fields: Any) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, **fields)], ME)


async def dead_letter(bench: Bench, **fields: Any) -> str:
    await bench.worker()
    task_id = await bench.submit(payload=ACME, **fields)
    assert (await bench.settle(await bench.lease(), FATAL)).state == TaskState.DEAD_LETTERED
    return task_id


async def redrive(bench: Bench, task_id: str, payload: Any = OTHER) -> PerdureError | str:
    (answer,) = await bench.engine.redrive([task_id], ME, payload=payload)
    return answer


@pytest.mark.parametrize("at_submit", [False, True])
async def test_a_key_by_fields_is_that_of_the_new_payload(bench: Bench, at_submit: bool) -> None:
    """Whether the kind says that its tasks are unique, or who submits."""
    if not at_submit:
        await declare(bench, unique=BY_CUSTOMER)
    said = {"unique": BY_CUSTOMER} if at_submit else {}
    task_id = await dead_letter(bench, **said)
    assert await redrive(bench, task_id) == task_id
    refused = await bench.refusal(payload=OTHER, **said)
    assert isinstance(refused, UniqueConflict)
    assert refused.task_id == task_id
    await bench.submit(payload=ACME, **said)


async def test_a_conflict_is_refused_as_at_a_submit_and_the_task_stays_as_it_is(bench: Bench) -> None:
    await declare(bench, unique=BY_CUSTOMER)
    task_id = await dead_letter(bench)
    await bench.submit(payload=OTHER)
    before = await bench.view(task_id)
    refused, submitted = await redrive(bench, task_id), await bench.refusal(payload=OTHER)
    assert isinstance(refused, UniqueConflict)
    assert (refused.code, refused.message, refused.fields) == (submitted.code, submitted.message, submitted.fields)
    assert await bench.view(task_id) == before


async def test_a_key_that_was_given_stays(bench: Bench) -> None:
    await declare(bench, unique=BY_CUSTOMER)
    task_id = await dead_letter(bench, unique_key="mine")
    assert await redrive(bench, task_id) == task_id
    await bench.submit(payload=OTHER)
    refused = await bench.refusal(payload=ACME, unique_key="mine")
    assert isinstance(refused, UniqueConflict)
    assert refused.task_id == task_id


async def test_limits_by_fields_hold_for_the_new_payload(bench: Bench) -> None:
    await declare(bench, limits=[Limit(concurrency=1, by="customer")])
    task_id = await dead_letter(bench)
    await bench.submit(payload=OTHER)
    assert await redrive(bench, task_id) == task_id
    assert (await bench.view(task_id)).state == TaskState.PENDING
    free = await bench.submit(payload=ACME)
    assert (await bench.view(free)).state == TaskState.QUEUED


async def test_limits_are_those_that_the_kind_has_now(bench: Bench) -> None:
    await declare(bench, limits=[Limit(concurrency=1, by="customer")])
    task_id = await dead_letter(bench)
    await bench.submit(payload=OTHER)
    await declare(bench)
    assert await redrive(bench, task_id) == task_id
    assert (await bench.view(task_id)).state == TaskState.QUEUED


async def test_what_else_a_task_was_submitted_with_stays(bench: Bench) -> None:
    await declare(bench, unique=BY_CUSTOMER, limits=[Limit(concurrency=1, by="customer")])
    task_id = await dead_letter(bench, labels={"month": "may"}, metadata={"note": [1, None]})
    assert await redrive(bench, task_id) == task_id
    view = await bench.view(task_id)
    assert (view.labels, view.metadata) == ({"month": "may"}, {"note": [1, None]})
