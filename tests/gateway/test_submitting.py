"""Submits over HTTP: keys, lists, what is refused, and what hostile bodies do."""

from typing import Any

import pytest

from gateway.asking import Asker, open_asker
from gateway.lives import stored
from perdure.domain.retention import Retention


async def test_the_same_key_with_the_same_request_answers_the_same_task(asker: Asker):
    body = {"kind": "k", "payload": {"n": 1}}
    first = await asker.ask("POST", "/v1/tasks", body, headers={"idempotency-key": "one"})
    again = await asker.ask("POST", "/v1/tasks", body, headers={"idempotency-key": "one"})
    assert (first.status, again.status) == (202, 200)
    assert first.headers["location"] == again.headers["location"] == f"/v1/tasks/{first.json['id']}"
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json["replayed"] is True


async def test_the_same_key_with_another_request_is_a_conflict_that_names_the_task(asker: Asker):
    first = await asker.ask("POST", "/v1/tasks", {"kind": "k"}, headers={"idempotency-key": "one"})
    other = await asker.ask("POST", "/v1/tasks", {"kind": "k", "payload": 2}, headers={"idempotency-key": "one"})
    assert other.status == 409
    assert other.json["code"] == "idempotency_conflict"
    assert other.json["task_id"] == first.json["id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x01b"])
async def test_a_key_of_a_wrong_length_is_malformed(asker: Asker, key: str):
    scope_headers = {"idempotency-key": key or " "}
    if not key:
        answer = await asker.ask("POST", "/v1/tasks", {"kind": "k", "idempotency_key": ""})
        assert answer.status == 422
        return
    answer = await asker.ask("POST", "/v1/tasks", {"kind": "k"}, headers=scope_headers)
    assert answer.status == 400
    assert answer.json["field"] == "Idempotency-Key"


async def test_header_and_body_may_not_say_different_keys(asker: Asker):
    body = {"kind": "k", "idempotency_key": "b"}
    answer = await asker.ask("POST", "/v1/tasks", body, headers={"idempotency-key": "a"})
    assert (answer.status, answer.json["field"]) == (409, "idempotency_key")


async def test_each_item_of_a_list_has_its_own_answer(asker: Asker):
    items = [
        {"kind": "k", "idempotency_key": "a"},
        {"kind": "k", "priority": 99},
        {"kind": "k", "idempotency_key": "b"},
    ]
    answer = await asker.ask("POST", "/v1/tasks", items)
    assert answer.status == 207
    first, refused, last = answer.json["tasks"]
    assert first["id"] != last["id"]
    assert refused["problem"]["field"] == "priority"
    again = await asker.ask("POST", "/v1/tasks", [items[0], items[2]])
    assert again.status == 200
    told = {"replayed": True, "outcome": "existing"}
    assert again.json["tasks"] == [{**first, **told}, {**last, **told}]


async def test_a_replay_of_a_task_that_has_been_removed_tells_its_id_and_no_state(asker: Asker):
    body = {"kind": "k", "idempotency_key": "one"}
    first = await asker.ask("POST", "/v1/tasks", body)
    await asker.ask("POST", f"/v1/tasks/{first.json['id']}/cancel", {})
    asker.clock.move(1)
    await asker.system.own_store().ledger.retain(Retention(0), 100)
    again = await asker.ask("POST", "/v1/tasks", body)
    told = {"id": first.json["id"], "state": None, "replayed": True, "outcome": "existing"}
    assert (again.status, again.json) == (200, told)
    listed = await asker.ask("POST", "/v1/tasks", [body])
    del told["state"]
    assert (listed.status, listed.json["tasks"]) == (200, [told])


@pytest.mark.parametrize("key", ["one", "x" * 255])
async def test_a_list_that_is_sent_again_with_its_key_makes_nothing_new(asker: Asker, key: str):
    items = [{"kind": "k"}, {"kind": "k"}, {"kind": "k", "idempotency_key": "own"}]
    first = await asker.ask("POST", "/v1/tasks", items, headers={"idempotency-key": key})
    again = await asker.ask("POST", "/v1/tasks", items, headers={"idempotency-key": key})
    assert (first.status, again.status) == (202, 200)
    assert [task["id"] for task in again.json["tasks"]] == [task["id"] for task in first.json["tasks"]]
    assert len({task["id"] for task in first.json["tasks"]}) == 3


async def test_an_empty_list_is_refused(asker: Asker):
    assert (await asker.ask("POST", "/v1/tasks", [])).status == 422


async def test_whole_numbers_may_be_written_with_a_point(asker: Asker):
    answer = await asker.ask(
        "POST", "/v1/tasks", data=b'{"kind":"k","priority":7.0,"payload":{"x":1.0},"max_attempts":2.0}'
    )
    task = (await asker.ask("GET", answer.headers["location"])).json
    assert (task["priority"], task["max_attempts"]) == (7, 2)
    assert (await asker.ask("POST", "/v1/tasks", {"kind": "k", "priority": 7.5})).status == 422


async def test_a_job_has_its_own_key_and_its_names_lead_to_ids(asker: Asker):
    body = {"name": "j", "tasks": [{"name": "a", "kind": "k"}, {"name": "b", "kind": "k", "depends_on": ["a"]}]}
    first = await asker.ask("POST", "/v1/jobs", body, headers={"idempotency-key": "one"})
    again = await asker.ask("POST", "/v1/jobs", body, headers={"idempotency-key": "one"})
    assert (first.status, again.status) == (202, 200)
    assert first.headers["location"] == f"/v1/jobs/{first.json['id']}"
    assert again.json == {**first.json, "replayed": True}
    assert set(first.json["tasks"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"kind": "k", "payload": "x" * 300_000}, 413, "payload"),
        ({"kind": ""}, 422, "kind"),
        ({"kind": "k", "delay": 1, "run_at": "2027-02-01T00:00:00Z"}, 422, "run_at"),
        ({"kind": "k", "run_at": "tomorrow"}, 422, "run_at"),
        ({"kind": "k", "run_at": "2027-02-01T00:00:00"}, 422, "run_at"),
        ({"kind": "k", "ttl": -1}, 422, "ttl"),
        ({"kind": "k", "timeout": "1"}, 422, "timeout"),
        ({"kind": "k", "max_attempts": 0}, 422, "max_attempts"),
        ({"kind": "k", "labels": {"a": 1}}, 422, "labels[...]"),
        ({"kind": "k", "surprise": 1}, 422, "surprise"),
        ({"payload": 1}, 422, "kind"),
    ],
)
async def test_what_breaks_a_rule_is_refused_with_its_field(asker: Asker, body: Any, status: int, field: str):
    before = await stored(asker)
    answer = await asker.ask("POST", "/v1/tasks", body)
    assert answer.status == status, answer.data
    assert answer.json["field"] == field
    assert await stored(asker) == before


async def test_cycles_and_unknown_dependencies_are_refused_with_the_names(asker: Asker):
    cycle = [{"name": "a", "kind": "k", "depends_on": ["b"]}, {"name": "b", "kind": "k", "depends_on": ["a"]}]
    unknown = [{"name": "a", "kind": "k", "depends_on": ["nobody"]}]
    for tasks in (cycle, unknown, []):
        answer = await asker.ask("POST", "/v1/jobs", {"name": "j", "tasks": tasks})
        assert answer.status == 422
        assert answer.json["field"]
    assert (await asker.ask("GET", "/v1/jobs")).json["jobs"] == []


async def test_a_queue_at_its_depth_tells_when_to_come_again(asker: Asker):
    await asker.ask("PATCH", "/v1/queues/default", {"depth": 1})
    assert (await asker.ask("POST", "/v1/tasks", {"kind": "k"})).status == 202
    answer = await asker.ask("POST", "/v1/tasks", {"kind": "k"})
    assert answer.status == 429
    assert int(answer.headers["retry-after"]) >= 1


HOSTILE: dict[str, tuple[bytes, int]] = {
    "ten megabytes": (b'{"kind":"k","payload":"' + b"x" * 10_000_000 + b'"}', 413),
    "ten thousand levels": (b'{"kind":"k","payload":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
    "a hundred levels": (b'{"kind":"k","payload":' + b"[" * 100 + b"]" * 100 + b"}", 422),
    "NUL in a name": (b'{"kind":"k\\u0000"}', 422),
    "half a surrogate pair": (b'{"kind":"k","payload":"\\ud800"}', 400),
    "half a surrogate pair in metadata": (b'{"kind":"k","metadata":"\\ud800"}', 400),
    "NaN": (b'{"kind":"k","payload":NaN}', 400),
    "a number without end": (b'{"kind":"k","payload":1e400}', 422),
    "an integer of 5,000 digits": (b'{"kind":"k","payload":' + b"9" * 5_000 + b"}", 422),
    "bytes that are no UTF-8": (b'{"kind":"k","payload":"\xff\xfe"}', 400),
    "a mark of byte order": (b'\xef\xbb\xbf{"kind":"k"}', 400),
    "two documents": (b'{"kind":"k"}{"kind":"k"}', 400),
    "a comment": (b'{"kind":"k"/*x*/}', 400),
    "nothing": (b"", 400),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_body_gets_a_coded_refusal_and_stores_nothing(asker: Asker, name: str):
    data, status = HOSTILE[name]
    before = await stored(asker)
    answer = await asker.ask("POST", "/v1/tasks", data=data, headers={"content-type": "application/json"})
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json"), answer.data[:300]
    assert await stored(asker) == before


async def test_more_keys_than_the_limit_are_refused():
    async with open_asker(json_max_keys=10) as asker:
        many = {"kind": "k", "payload": {str(number): number for number in range(20)}}
        assert (await asker.ask("POST", "/v1/tasks", many)).status == 413
        colons = {"kind": "k", "payload": "::::::::::::::::::::::"}
        assert (await asker.ask("POST", "/v1/tasks", colons)).status == 202


async def test_a_body_in_pieces_is_bounded_although_nobody_said_its_length():
    async with open_asker(body_max_bytes=1_000) as asker:
        pieces = [b'{"kind":"k","payload":"', b"x" * 900, b"x" * 900, b'"}']
        answer = await asker.ask("POST", "/v1/tasks", pieces=pieces, headers={"content-type": "application/json"})
        assert answer.status == 413
        good = await asker.ask(
            "POST", "/v1/tasks", pieces=[b'{"kind":', b'"k"}'], headers={"content-type": "application/json"}
        )
        assert good.status == 202


async def test_a_refusal_never_tells_paths_or_statements(asker: Asker):
    await asker.system.close()
    answer = await asker.ask("POST", "/v1/tasks", {"kind": "k"})
    assert answer.status >= 500
    assert b"SELECT" not in answer.data
    assert b"/" not in answer.json["detail"].encode()
    assert answer.json["request_id"]


UNIQUE = {"by": "customer", "on_conflict": "return_existing"}


async def test_a_unique_task_is_answered_with_what_became_of_it(asker: Asker):
    body = {"kind": "k", "payload": {"customer": "a"}, "unique": UNIQUE}
    first = await asker.ask("POST", "/v1/tasks", body)
    again = await asker.ask("POST", "/v1/tasks", body)
    assert (first.status, first.json["outcome"]) == (202, "created")
    assert (again.status, again.json["outcome"], again.json["id"]) == (200, "existing", first.json["id"])
    assert "idempotency-replayed" not in again.headers
    replaced = await asker.ask("POST", "/v1/tasks", {**body, "unique": {**UNIQUE, "on_conflict": "replace"}})
    assert (replaced.status, replaced.json["outcome"]) == (202, "replaced")
    debounce = {**UNIQUE, "on_conflict": "debounce", "wait": 5}
    debounced = await asker.ask("POST", "/v1/tasks", {**body, "unique": debounce})
    assert (debounced.status, debounced.json["outcome"], debounced.json["state"]) == (200, "debounced", "pending")


async def test_a_unique_task_that_is_refused_is_a_conflict_that_names_the_holder(asker: Asker):
    body = {"kind": "k", "unique": {}}
    first = await asker.ask("POST", "/v1/tasks", body)
    refused = await asker.ask("POST", "/v1/tasks", body)
    assert (refused.status, refused.json["type"]) == (409, "/problems/unique_conflict")
    assert (refused.json["task_id"], refused.json["state"]) == (first.json["id"], "queued")


async def test_unique_tasks_in_a_list_have_their_own_answers(asker: Asker):
    body = {"kind": "k", "payload": {"customer": "a"}}
    uniques = [UNIQUE, UNIQUE, {**UNIQUE, "on_conflict": "reject"}]
    answer = await asker.ask("POST", "/v1/tasks", [{**body, "unique": each} for each in uniques])
    assert answer.status == 207
    first, second, refused = answer.json["tasks"]
    assert (first.get("outcome", "created"), second["outcome"], second["id"]) == ("created", "existing", first["id"])
    assert (refused["problem"]["code"], refused["problem"]["task_id"]) == ("unique_conflict", first["id"])


@pytest.mark.parametrize(
    ("unique", "field"),
    [
        ({"by": 7}, "unique.by"),
        ({"within": 0}, "unique.within"),
        ({"on_conflict": "merge"}, "unique.on_conflict"),
        ({"wait": 5}, "unique.wait"),
        ({"states": ["gone"]}, "unique.states[0]"),
    ],
)
async def test_what_a_unique_task_cannot_be_is_refused_with_its_place(asker: Asker, unique: Any, field: str):
    answer = await asker.ask("POST", "/v1/tasks", {"kind": "k", "unique": unique})
    assert (answer.status, answer.json["field"]) == (422, field)


async def test_a_client_that_sends_the_same_key_again_is_told_that_the_task_exists(asker: Asker):
    body = {"kind": "k", "unique": UNIQUE, "idempotency_key": "one"}
    first = await asker.ask("POST", "/v1/tasks", body)
    again = await asker.ask("POST", "/v1/tasks", body)
    assert (again.json["id"], again.json["replayed"], again.json["outcome"]) == (first.json["id"], True, "existing")
