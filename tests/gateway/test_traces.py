"""The header `traceparent` of a submit travels with its tasks to whoever runs them."""

from typing import Any

import msgspec

from gateway.asking import Asker
from gateway.lives import claimed, registered

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"
TASK = {"kind": "email.send", "payload": {}}


async def traces(asker: Asker, path: str, body: Any, header: str) -> list[str | None]:
    answer = await asker.ask("POST", path, body, headers={"traceparent": header})
    assert answer.status == 202, answer.data
    await registered(asker)
    leases = await claimed(asker, 1, count=10)
    return [msgspec.json.decode(lease["options"]).get("trace") if lease["options"] else None for lease in leases]


async def test_the_header_counts_where_the_body_says_nothing(asker: Asker):
    assert await traces(asker, "/v1/tasks", TASK, GIVEN) == [GIVEN]


async def test_what_the_body_says_goes_before_the_header_task_by_task(asker: Asker):
    assert await traces(asker, "/v1/tasks", [TASK, {**TASK, "trace": OTHER}], GIVEN) == [GIVEN, OTHER]


async def test_tasks_of_a_job_carry_it_too(asker: Asker):
    tasks = [{"name": "a", **TASK}, {"name": "b", **TASK, "trace": OTHER}]
    assert sorted(map(str, await traces(asker, "/v1/jobs", {"name": "j", "tasks": tasks}, GIVEN))) == [GIVEN, OTHER]


async def test_a_header_that_is_none_is_dropped(asker: Asker):
    assert await traces(asker, "/v1/tasks", TASK, "nonsense") == [None]
