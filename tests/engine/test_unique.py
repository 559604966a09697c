"""Unique tasks as kinds and requests say it: which tasks have one key, and what is refused."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.making import DONE, KIND, ME, Bench
from perdure.domain.limit import Limit
from perdure.domain.retry import Retry
from perdure.domain.unique import SubmitOutcome, Unique
from perdure.engine.requests import JobRequest, JobTaskRequest, KindDefinition
from perdure.errors import Invalid, UniqueConflict
from perdure.store.ledger import Submitted

BY_CUSTOMER = Unique(by="customer", on_conflict="return_existing")


async def declare(bench: Bench, unique: Unique, kind: str = KIND) -> None:
    await bench.engine.declare([KindDefinition(kind=kind, retry=Retry(1), unique=unique)], ME)


async def outcome(bench: Bench, **fields: Any) -> SubmitOutcome:
    answer = await bench.answer(**fields)
    assert isinstance(answer, Submitted), answer
    return answer.outcome


@pytest.mark.parametrize(
    ("by", "first", "second", "same"),
    [
        ("customer", {"customer": "a", "n": 1}, {"n": 2, "customer": "a"}, True),
        ("customer", {"customer": "a"}, {"customer": "b"}, False),
        ("customer", {"customer": 1}, {"customer": "1"}, False),
        ("customer", {"n": 1}, {"n": 2}, True),
        ("customer", {"n": 1}, {"customer": None}, True),
        ("customer", [1], [2], True),
        (("a", "b"), {"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": 2, "x": 1}, "a": 1}, True),
        (("a", "b"), {"a": 1, "b": 2}, {"a": 2, "b": 1}, False),
        ((), {"n": 1}, {"n": 2}, True),
        ("customer", {"customer": "a" * 1000}, {"customer": "a" * 1000}, True),
        ("customer", {"customer": "a" * 1000}, {"customer": "a" * 999}, False),
    ],
)
async def test_tasks_with_the_same_values_are_the_same(
    bench: Bench, by: Any, first: Any, second: Any, same: bool
) -> None:
    await declare(bench, Unique(by=by, on_conflict="return_existing"))
    assert await outcome(bench, payload=first) is SubmitOutcome.CREATED
    expected = SubmitOutcome.EXISTING if same else SubmitOutcome.CREATED
    assert await outcome(bench, payload=second) is expected


async def test_two_kinds_never_meet(bench: Bench) -> None:
    for kind in (KIND, "other"):
        await declare(bench, BY_CUSTOMER, kind)
        assert await outcome(bench, kind=kind, payload={"customer": "a"}) is SubmitOutcome.CREATED


async def test_a_request_says_it_where_the_kind_does_not_and_over_it(bench: Bench) -> None:
    said = {"payload": {"customer": "a"}, "unique": BY_CUSTOMER}
    assert [await outcome(bench, **said) for _ in range(2)] == [SubmitOutcome.CREATED, SubmitOutcome.EXISTING]
    await declare(bench, BY_CUSTOMER)
    refused = await bench.refusal(payload={"customer": "a"}, unique=Unique(by="customer"))
    assert isinstance(refused, UniqueConflict)


async def test_a_fingerprint_stands_for_fields_that_cannot_be_read(bench: Bench) -> None:
    await declare(bench, BY_CUSTOMER)
    assert await outcome(bench, payload="sealed", unique_key="f1") is SubmitOutcome.CREATED
    assert await outcome(bench, payload="sealed otherwise", unique_key="f1") is SubmitOutcome.EXISTING
    assert await outcome(bench, payload="sealed", unique_key="f2") is SubmitOutcome.CREATED


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"unique_key": "f"}, "unique_key"),
        ({"unique": Unique(), "unique_key": ""}, "unique_key"),
        ({"unique": {"by": "customer"}}, "unique"),
        ({"unique": Unique(on_conflict="debounce", wait=5), "delay": 1}, "delay"),
        ({"unique": Unique(on_conflict="debounce", wait=5), "run_at": datetime(2099, 1, 1, tzinfo=UTC)}, "run_at"),
        ({"unique": Unique(on_conflict="debounce", wait=5), "ttl": 5}, "ttl"),
    ],
)
async def test_what_contradicts_itself_is_refused(bench: Bench, fields: dict[str, Any], field: str) -> None:
    refused = await bench.refusal(**fields)
    assert isinstance(refused, Invalid)
    assert refused.field == field


CLOSED = {"type": "object", "properties": {"customer": {}, "n": {}}, "additionalProperties": False}


async def test_a_submit_is_not_unique_by_a_field_that_its_kind_does_not_take(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, schema=CLOSED), KindDefinition(kind="open")], ME)
    by_document = Unique(by=("customer", "document"), on_conflict="return_existing")
    refused = await bench.refusal(payload={"customer": 1}, unique=by_document)
    told = f"unique is by 'document', which kind {KIND!r} does not take: it takes customer, n"
    assert (refused.field, refused.message) == ("unique", told)
    assert await outcome(bench, payload={"customer": 1}, unique=BY_CUSTOMER) is SubmitOutcome.CREATED
    assert await outcome(bench, kind="open", payload={"customer": 1}, unique=by_document) is SubmitOutcome.CREATED
    assert await outcome(bench, unique=by_document, unique_key="f", payload={"n": 1}) is SubmitOutcome.CREATED


async def test_a_kind_is_not_declared_by_a_field_that_it_does_not_take(bench: Bench) -> None:
    for option, said in (
        ("unique", {"unique": Unique(by="document")}),
        ("limits", {"limits": [Limit(concurrency=1, by="document")]}),
        ("fair_by", {"fair_by": ["document"]}),
    ):
        with pytest.raises(Invalid) as refused:
            await bench.engine.declare([KindDefinition(kind=KIND, schema=CLOSED, **said)], ME)
        assert refused.value.field == option


async def test_a_debounced_task_runs_once_with_the_last_payload_after_the_wait(bench: Bench) -> None:
    await bench.worker()
    said = Unique(by="document", on_conflict="debounce", wait=5)
    for n in range(3):
        await bench.answer(payload={"document": 7, "n": n}, unique=said)
        await asyncio.sleep(4)
        assert await bench.engine.claim("w", 1) == []
    await asyncio.sleep(1)
    lease = await bench.lease()
    assert lease.payload.data == b'{"document":7,"n":2}'
    await bench.settle(lease, DONE)


async def test_the_first_wait_of_a_debounce_is_bounded_too(bench: Bench) -> None:
    task = await bench.submit(unique=Unique(on_conflict="debounce", wait=50, max_wait=5))
    view = await bench.view(task)
    assert view.due_us is not None
    assert view.due_us - view.created_us == 5_000_000


def node(name: str, **fields: Any) -> JobTaskRequest:
    return JobTaskRequest(**{"kind": KIND, "name": name, **fields})


async def test_a_job_is_refused_with_the_names_of_its_tasks_whose_keys_are_held(bench: Bench) -> None:
    job = JobRequest(name="j", tasks=[node("a"), node("b", unique=Unique())])
    await bench.engine.submit_job(job, ME)
    with pytest.raises(UniqueConflict) as refused:
        await bench.engine.submit_job(job, ME)
    assert refused.value.names == ["b"]


@pytest.mark.parametrize(
    "unique",
    [
        Unique(on_conflict="return_existing"),
        Unique(on_conflict="replace"),
        Unique(on_conflict="debounce", wait=5),
        Unique(on_conflict="throttle", within=5),
    ],
)
async def test_a_job_takes_no_task_that_may_be_answered_with_another(bench: Bench, unique: Unique) -> None:
    with pytest.raises(Invalid) as refused:
        await bench.engine.submit_job(JobRequest(name="j", tasks=[node("a", unique=unique)]), ME)
    assert refused.value.field == "tasks.a.unique"


async def test_a_task_is_not_unique_by_the_result_of_another(bench: Bench) -> None:
    bound = node("b", depends_on=["a"], bindings={"customer": "a"}, unique=Unique(by="customer"))
    with pytest.raises(Invalid) as refused:
        await bench.engine.submit_job(JobRequest(name="j", tasks=[node("a"), bound]), ME)
    assert refused.value.field == "tasks.b.unique"
