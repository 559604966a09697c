"""Tasks that ask for nothing special are built together, as each would be alone; any other among them is seen."""

from typing import Any

import pytest

from engine.making import KIND, ME, Bench
from perdure.domain import limits
from perdure.engine.build_task import TaskBuilder
from perdure.engine.encoding import Checked
from perdure.engine.requests import AlikeRequests, TaskRequest
from perdure.errors import Invalid
from perdure.store.ledger import Submitted

PLAIN = [TaskRequest(kind=KIND, payload=Checked(b'{"n":%d}' % n)) for n in range(3)]


async def builder(bench: Bench) -> TaskBuilder:
    """One that has built a task of the kind before."""
    submit = bench.engine._submit
    made = submit.builder(ME, await submit._kinds.of(ME.organization))
    made.build(PLAIN[0])
    return made


async def test_they_are_built_as_each_would_be_alone(bench: Bench) -> None:
    together, alone = await builder(bench), await builder(bench)
    tasks = together.build_plain(PLAIN)
    assert tasks is not None
    assert [task[1:] for task in tasks] == [alone.build(request)[1:] for request in PLAIN]
    assert len({task.id for task in tasks}) == len(PLAIN)
    assert together.bytes_left == alone.bytes_left


async def test_requests_in_a_column_are_those_that_they_stand_for(bench: Bench) -> None:
    column = AlikeRequests(KIND, [request.payload for request in PLAIN])
    assert list(column) == PLAIN
    assert list(column[1:]) == PLAIN[1:]
    one_by_one, together = await builder(bench), await builder(bench)
    tasks, same = together.build_plain(column), one_by_one.build_plain(PLAIN)
    assert tasks is not None
    assert same is not None
    assert [task[1:] for task in tasks] == [task[1:] for task in same]
    assert (await builder(bench)).build_plain(AlikeRequests(KIND, [PLAIN[0].payload, {"n": 1}])) is None


async def test_one_bad_payload_in_a_column_is_refused_in_its_place(bench: Bench) -> None:
    payloads: list[Any] = [{"n": n} for n in range(100)]
    payloads[63] = {"n": float("nan")}
    answers = await bench.engine.submit(AlikeRequests(KIND, payloads), ME)
    assert [place for place, answer in enumerate(answers) if isinstance(answer, Invalid)] == [63]
    assert sum(isinstance(answer, Submitted) for answer in answers) == 99


@pytest.mark.parametrize(
    "odd",
    [
        TaskRequest(kind="another", payload=PLAIN[0].payload),
        TaskRequest(kind=KIND, payload={"n": 1}),
        TaskRequest(kind=KIND, payload=PLAIN[0].payload, priority=1),
        TaskRequest(kind=KIND, payload=PLAIN[0].payload, idempotency_key="k"),
        TaskRequest(kind=KIND, payload=Checked(b"1" * (limits.PAYLOAD_MAX_BYTES + 1))),
        TaskRequest(kind=KIND, payload=Checked(b'"\xff"')),
    ],
)
async def test_one_that_is_otherwise_is_left_to_the_way_of_single_tasks(bench: Bench, odd: TaskRequest) -> None:
    made = await builder(bench)
    left = made.bytes_left
    assert made.build_plain([*PLAIN, odd]) is None
    assert made.build_plain([odd, *PLAIN]) is None
    assert made.bytes_left == left


async def test_more_bytes_than_a_call_may_have_are_refused_one_by_one(bench: Bench) -> None:
    made = await builder(bench)
    made.bytes_left = sum(len(request.payload.data) for request in PLAIN) - 1
    assert made.build_plain(PLAIN) is None


async def test_a_call_of_nothing_is_nothing(bench: Bench) -> None:
    nothing: list[Any] = []
    assert not (await builder(bench)).build_plain(nothing)
