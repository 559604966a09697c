"""Lists and single things: filters, pages, what is unknown; cancels."""

from typing import Any

import pytest

from gateway.asking import Asker
from gateway.lives import claimed, dead, held, job, registered, submitted
from perdure.engine.requests import KindDefinition, Principal


async def test_pages_follow_each_other_by_cursor_and_miss_nothing(asker: Asker):
    made = [await submitted(asker) for _ in range(7)]
    seen: list[str] = []
    query: Any = {"limit": 3}
    while True:
        page = (await asker.ask("GET", "/v1/tasks", query=query)).json
        seen += [task["id"] for task in page["tasks"]]
        if page["cursor"] is None:
            break
        query = {"limit": 3, "cursor": page["cursor"]}
    assert seen == made[::-1]


async def test_filters_narrow_a_list(asker: Asker):
    wanted = await submitted(asker, queue="mail", labels={"customer": "42"})
    other = await submitted(asker, labels={"customer": "43"})
    one = await job(asker)
    for query, expected in (
        ({"queue": "mail"}, {wanted}),
        ({"label": "customer=42"}, {wanted}),
        ({"kind": ["email.send"], "state": ["queued", "running"]}, {wanted, other}),
        ({"job": one["id"]}, set(one["tasks"].values())),
        ({"state": "running"}, set()),
    ):
        page = (await asker.ask("GET", "/v1/tasks", query=query)).json
        assert {task["id"] for task in page["tasks"]} == expected, query
        assert all("payload" not in task for task in page["tasks"])


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"state": "sleeping"}, "state[0]"),
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": ["1", "2"]}, "limit"),
        ({"cursor": "%%%"}, "cursor"),
        ({"job": "not-an-id"}, None),
        ({"label": "no separator"}, "label[0]"),
        ({"sort": "random"}, "sort"),
        ({"stat": "queued"}, "stat"),
    ],
)
async def test_a_parameter_that_means_nothing_is_malformed(asker: Asker, query: Any, field: str | None):
    answer = await asker.ask("GET", "/v1/tasks", query=query)
    assert answer.status == 400, answer.data
    assert field is None or answer.json["field"] == field


async def test_a_task_shows_payload_and_result(asker: Asker):
    hold = await held(asker)
    outcome = {"outcome": "succeeded", "result": {"sent": True}, "summary": "sent"}
    await asker.ask("POST", "/v1/worker/settle", {"settlements": [{"hold": hold, "outcome": outcome}]})
    task = (await asker.ask("GET", f"/v1/tasks/{hold['task_id']}")).json
    assert (task["state"], task["payload"], task["result"]) == ("succeeded", {"to": "a@b.c"}, {"sent": True})
    assert task["finished_at"].endswith("Z")
    waited = await asker.ask("POST", "/v1/tasks/wait", {"ids": [hold["task_id"]], "wait": 5})
    assert waited.json["tasks"][0]["result"] == {"sent": True}


async def test_a_cancel_answers_by_where_the_task_is(asker: Asker):
    waiting = await submitted(asker)
    body = {"reason": "not needed", "note": "asked by phone"}
    first = await asker.ask("POST", f"/v1/tasks/{waiting}/cancel", body)
    assert (first.status, first.json["state"]) == (200, "cancelled")
    again = await asker.ask("POST", f"/v1/tasks/{waiting}/cancel", {"reason": "another"})
    assert (again.status, again.json["cancel"]) == (200, first.json["cancel"])
    assert first.json["cancel"]["text"] == "not needed"

    hold = await held(asker)
    asked = await asker.ask("POST", f"/v1/tasks/{hold['task_id']}/cancel")
    assert (asked.status, asked.json["state"]) == (202, "cancelling")
    controls = await asker.ask("GET", "/v1/worker/control", query={"worker_id": await registered(asker)})
    assert [each["attempt_id"] for each in controls.json["controls"]] == [hold["attempt_id"]]
    repeated = await asker.ask("POST", f"/v1/tasks/{hold['task_id']}/cancel")
    assert (repeated.status, repeated.json) == (202, asked.json)

    ended = await dead(asker, 2)
    gone = await asker.ask("POST", f"/v1/tasks/{ended}/cancel")
    assert (gone.status, gone.json["state"], gone.json["reason"]) == (410, "dead_lettered", "permanent")


async def test_many_cancels_have_an_answer_each(asker: Asker):
    waiting, nobody = await submitted(asker), "0198c5a4-7f3e-7abc-8def-0123456789ab"
    answer = await asker.ask("POST", "/v1/tasks/cancel", {"ids": [waiting, nobody]})
    assert [each["answer"] for each in answer.json["tasks"]] == ["cancelled", "not_found"]


async def test_a_dead_letter_is_found_and_requeued(asker: Asker):
    task_id = await dead(asker)
    listed = (await asker.ask("GET", "/v1/dead-letters")).json["tasks"]
    assert [task["id"] for task in listed] == [task_id]
    answer = await asker.ask("POST", f"/v1/dead-letters/{task_id}/requeue", {"payload": {"to": "c@d.e"}})
    assert (answer.status, answer.json["state"]) == (202, "queued")
    [lease] = await claimed(asker, 5)
    assert (lease["payload"], lease["generation"]) == ({"to": "c@d.e"}, 2)
    twice = await asker.ask("POST", f"/v1/dead-letters/{task_id}/requeue")
    assert twice.status == 409


async def test_a_dead_letter_is_requeued_only_with_a_payload_that_its_kind_takes(asker: Asker):
    task_id = await dead(asker)
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    await asker.system.engine.declare([KindDefinition(kind="email.send", schema=schema)], Principal("them"))
    answer = await asker.ask("POST", f"/v1/dead-letters/{task_id}/requeue", {"payload": {"to": 7}})
    assert (answer.status, answer.json["field"]) == (422, "payload.to")
    [many] = (await asker.ask("POST", "/v1/dead-letters/requeue", {"ids": [task_id], "payload": {}})).json["tasks"]
    assert (many["problem"]["code"], many["problem"]["field"]) == ("invalid", "payload")
    assert (await asker.ask("GET", f"/v1/tasks/{task_id}")).json["state"] == "dead_lettered"
    answer = await asker.ask("POST", f"/v1/dead-letters/{task_id}/requeue", {"payload": {"to": "c@d.e"}})
    assert answer.status == 202


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(asker: Asker):
    await submitted(asker)
    await registered(asker)
    await asker.ask("POST", "/v1/queues/default/pause")
    assert await claimed(asker, 1) == []
    await asker.ask("POST", "/v1/queues/default/resume")
    assert len(await claimed(asker, 2)) == 1


async def test_a_drained_worker_is_told(asker: Asker):
    worker = await registered(asker)
    assert (await asker.ask("POST", f"/v1/workers/{worker}/drain")).json == {"id": worker, "order": "drain"}
    beat = await asker.ask("POST", "/v1/worker/heartbeat", {"worker_id": worker, "capacity": 1})
    assert beat.json == {"order": "drain"}


async def test_for_how_long_a_worker_is_silent_is_told_in_seconds(asker: Asker):
    worker = await registered(asker)
    [told] = (await asker.ask("GET", "/v1/workers")).json["workers"]
    assert told["id"] == worker
    assert 0 <= told["silent"] < 60


async def test_counts_and_settings_are_told(asker: Asker):
    await submitted(asker)
    counts = (await asker.ask("GET", "/v1/meta/tasks")).json
    assert counts["by_state"] == {"queued": 1}
    config = (await asker.ask("GET", "/v1/meta/config")).json
    assert config["settings"] == {"lease": 60.0}
