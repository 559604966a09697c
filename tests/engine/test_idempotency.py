"""One key, one task: the same request again is told so, another request is refused."""

import msgspec
import pytest

from engine.making import KIND, ME, Bench
from perdure.domain.unique import Unique
from perdure.engine.build_task import request_hash
from perdure.engine.requests import KindDefinition, Principal, TaskRequest
from perdure.errors import IdempotencyConflict
from perdure.store.ledger import Submitted

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_the_same_request_again_is_a_replay(bench: Bench) -> None:
    first = await bench.answer(payload={"a": 1, "b": 2}, idempotency_key="k", trace=TRACE)
    again = await bench.answer(payload={"b": 2, "a": 1}, idempotency_key="k")
    assert isinstance(first, Submitted)
    assert isinstance(again, Submitted)
    assert (again.id, first.replayed, again.replayed) == (first.id, False, True)


async def test_another_request_under_the_same_key_is_a_conflict(bench: Bench) -> None:
    first = await bench.submit(payload=1, idempotency_key="k")
    refusal = await bench.refusal(payload=2, idempotency_key="k")
    assert isinstance(refusal, IdempotencyConflict)
    assert refusal.fields["task_id"] == first


@pytest.mark.parametrize("more", [{}, {"priority": 7}], ids=["nothing but a key", "more"])
async def test_a_request_without_a_payload_is_the_same_before_and_after_its_kind_is_known(
    bench: Bench, more: dict[str, int]
) -> None:
    first = await bench.submit(idempotency_key="k", **more)
    fields = KindDefinition(kind=KIND, schema={"type": "object"}, unique=Unique(by="x"))
    await bench.engine.declare([fields], ME)
    assert await bench.submit(idempotency_key="k", **more) == first
    second = await bench.submit(idempotency_key="l", **more)
    assert await bench.submit(idempotency_key="l", **more) == second
    assert isinstance(await bench.refusal(idempotency_key="l", payload={"x": 1}, **more), IdempotencyConflict)
    await bench.engine.declare([KindDefinition(kind=KIND)], ME)
    assert await bench.submit(idempotency_key="l", **more) == second


async def test_a_task_without_a_payload_is_unique_by_fields_that_are_null(bench: Bench) -> None:
    unique = Unique(by="x", on_conflict="return_existing")
    first = await bench.submit(unique=unique)
    await bench.engine.declare([KindDefinition(kind=KIND, schema={"type": "object"})], ME)
    assert await bench.submit(unique=unique) == first
    assert await bench.submit(unique=unique, payload={}) == first


async def test_two_of_one_call_race_like_two_calls(bench: Bench) -> None:
    request = TaskRequest(kind=KIND, payload=1, idempotency_key="k")
    one, two = await bench.engine.submit([request, request], ME)
    assert isinstance(one, Submitted)
    assert isinstance(two, Submitted)
    assert (one.id, one.replayed, two.replayed) == (two.id, False, True)


async def test_a_key_belongs_to_its_submitter(bench: Bench) -> None:
    request = TaskRequest(kind=KIND, payload=1, idempotency_key="k")
    (mine,) = await bench.engine.submit([request], ME)
    (theirs,) = await bench.engine.submit([request], Principal("you"))
    assert isinstance(mine, Submitted)
    assert isinstance(theirs, Submitted)
    assert mine.id != theirs.id


@pytest.mark.parametrize(
    "other",
    [
        TaskRequest(kind="other", payload=1),
        TaskRequest(kind=KIND, payload=2),
        TaskRequest(kind=KIND, payload=1, priority=4),
        TaskRequest(kind=KIND, payload=1, delay=0.0),
        TaskRequest(kind=KIND, payload=1, labels={"a": "b"}),
    ],
)
def test_requests_that_ask_for_something_else_have_another_hash(other: TaskRequest) -> None:
    request = TaskRequest(kind=KIND, payload=1)
    payload = msgspec.json.encode(other.payload).decode()
    assert request_hash(request, "1") != request_hash(other, payload)


def test_key_and_trace_do_not_change_what_was_asked_for() -> None:
    bare = TaskRequest(kind=KIND, payload=1)
    dressed = TaskRequest(kind=KIND, payload=1, trace=TRACE, idempotency_key="k")
    assert request_hash(bare, "1") == request_hash(dressed, "1")


async def test_a_task_that_asks_for_nothing_but_a_key_is_known_by_the_hash_of_its_request(bench: Bench) -> None:
    """It is built a shorter way than others; what is stored must not tell of that."""
    request = TaskRequest(kind=KIND, payload={"b": 1, "a": 2}, idempotency_key="k")
    await bench.engine.submit([request], ME)
    [[kept]] = bench.store.writer.commits.connected().execute("SELECT request_hash FROM perdure_tasks")
    assert kept == request_hash(request, '{"a":2,"b":1}')
