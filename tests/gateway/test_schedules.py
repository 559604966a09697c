"""Schedules over HTTP: declared, looked at, paused, asked for, and what is refused."""

from typing import Any

import pytest

from gateway.asking import Asker

PATH = "/v1/schedules/nightly"
BODY = {"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "task": {"kind": "email.send", "payload": {"n": [1]}}}


async def put(asker: Asker, path: str = PATH, **more: Any) -> Any:
    answer = await asker.ask("PUT", path, {**BODY, **more})
    assert answer.status in (200, 201), answer.data
    return answer.json


async def test_the_life_of_a_schedule(asker: Asker):
    assert (await asker.ask("GET", PATH)).status == 404
    made = await asker.ask("PUT", PATH, BODY, headers={"if-none-match": "*"})
    assert made.status == 201
    etag = made.headers["etag"]
    shown = made.json
    assert (shown["name"], shown["definition"], shown["declared_by"]) == ("nightly", BODY, "app")
    assert (shown["enabled"], shown["paused"], shown["last_at"], shown["last_task_id"]) == (True, False, None, None)
    assert shown["next_at"] == shown["due_at"]
    read = await asker.ask("GET", PATH)
    assert (read.status, read.headers["etag"], read.json) == (200, etag, shown)
    assert (await asker.ask("GET", PATH, headers={"if-none-match": etag})).status == 304
    same = await asker.ask("PUT", PATH, BODY, headers={"if-match": etag})
    assert (same.status, same.headers["etag"]) == (200, etag)
    changed = await asker.ask("PUT", PATH, {**BODY, "jitter": 5})
    assert (changed.status, changed.headers["etag"] != etag) == (200, True)
    assert (await asker.ask("PUT", PATH, BODY, headers={"if-match": etag})).status == 412
    assert (await asker.ask("PUT", PATH, BODY, headers={"if-none-match": "*"})).status == 412
    assert (await asker.ask("DELETE", PATH, headers={"if-match": etag})).status == 412
    assert (await asker.ask("DELETE", PATH, headers={"if-match": changed.headers["etag"]})).status == 204
    assert (await asker.ask("DELETE", PATH)).status == 404


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("cron", {"cron": "61 * * * *"}),
        ("cron", {"cron": "0 0 30 2 *"}),
        ("cron", {"cron": ""}),
        ("cron", {"cron": "@reboot"}),
        ("time_zone", {"time_zone": "Mars/Olympus"}),
        ("time_zone", {"time_zone": "../../etc/passwd"}),
        ("every", {"cron": None, "time_zone": None, "every": 0}),
        ("every", {"cron": None, "time_zone": None, "every": -1}),
        ("every", {"cron": None, "time_zone": None, "every": 1e300}),
        ("every", {"every": 5}),
        ("cron", {"cron": None, "time_zone": None}),
        ("at", {"cron": None, "time_zone": None, "at": "2026-01-01T00:00:00"}),
        ("at", {"cron": None, "time_zone": None, "at": "9999-01-01T00:00:00Z"}),
        ("at", {"cron": None, "time_zone": None, "at": "2026-02-30T00:00:00Z"}),
        ("gap", {"gap": "jump"}),
        ("overlap", {"overlap": "sometimes"}),
        ("jitter", {"jitter": -1}),
        ("end", {"start": "2027-01-02T00:00:00Z", "end": "2027-01-01T00:00:00Z"}),
        ("task", {"task": None}),
        ("task", {"job": {"name": "j", "tasks": [{"name": "a", "kind": "k"}]}}),
        ("kind", {"task": {"kind": "no kind"}}),
        ("job", {"task": None, "job": {"name": "j", "idempotency_key": "k", "tasks": [{"name": "a", "kind": "k"}]}}),
    ],
)
async def test_what_cannot_be_is_refused_with_its_field_and_stores_nothing(field: str, body: Any, asker: Asker):
    said = {name: value for name, value in {**BODY, **body}.items() if value is not None}
    answer = await asker.ask("PUT", PATH, said)
    assert answer.status == 422, answer.data
    assert answer.json["field"] == field
    assert (await asker.ask("GET", PATH)).status == 404


@pytest.mark.parametrize("name", ["a b", "%00", "-x", "ä", "x" * 201])
async def test_a_name_that_is_none_is_refused(name: str, asker: Asker):
    for method, suffix, body in (("GET", "", None), ("PUT", "", BODY), ("DELETE", "", None), ("POST", "/pause", None)):
        answer = await asker.ask(method, f"/v1/schedules/{name}{suffix}", body)
        assert answer.status in (400, 422), answer.data


async def test_of_a_schedule_that_is_not_there_nothing_can_be_done(asker: Asker):
    assert (await asker.ask("GET", f"{PATH}/preview")).status == 404
    assert (await asker.ask("GET", f"{PATH}/fires")).status == 404
    for verb in ("pause", "resume", "trigger"):
        assert (await asker.ask("POST", f"{PATH}/{verb}")).status == 404
    body = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"}
    assert (await asker.ask("POST", f"{PATH}/backfill", body)).status == 404


async def test_pages_of_schedules_are_by_name_and_of_a_set(asker: Asker):
    for name, of_set in (("b", "mine"), ("a", "mine"), ("c", "yours")):
        await put(asker, f"/v1/schedules/{name}", set=of_set)
    first = (await asker.ask("GET", "/v1/schedules", query=(("limit", "2"),))).json
    assert [each["name"] for each in first["schedules"]] == ["a", "b"]
    second = (await asker.ask("GET", "/v1/schedules", query=(("limit", "2"), ("cursor", first["cursor"])))).json
    assert ([each["name"] for each in second["schedules"]], second["cursor"]) == (["c"], None)
    mine = (await asker.ask("GET", "/v1/schedules", query=(("set", "mine"),))).json
    assert [each["name"] for each in mine["schedules"]] == ["a", "b"]
    for query in ((("limit", "0"),), (("limit", "x"),), (("nobody", "1"),)):
        assert (await asker.ask("GET", "/v1/schedules", query=query)).status == 400


async def test_a_paused_schedule_says_by_whom_and_goes_on_when_resumed(asker: Asker):
    await put(asker)
    paused = (await asker.ask("POST", f"{PATH}/pause")).json
    assert (paused["paused"], paused["paused_by"], paused["due_at"]) == (True, "app", None)
    assert paused["next_at"] is not None
    resumed = (await asker.ask("POST", f"{PATH}/resume")).json
    assert (resumed["paused"], resumed["due_at"]) == (False, paused["next_at"])


async def test_a_trigger_makes_a_task_and_a_backfill_those_of_a_range_once(asker: Asker):
    await put(asker)
    triggered = await asker.ask("POST", f"{PATH}/trigger")
    assert triggered.status == 202
    task = (await asker.ask("GET", f"/v1/tasks/{triggered.json['task_id']}")).json
    assert (task["principal"], task["payload"]) == ("schedule:nightly", {"n": [1]})
    body = {"start": "2026-03-28T00:00:00Z", "end": "2026-03-30T00:00:00Z"}
    filled = (await asker.ask("POST", f"{PATH}/backfill", body)).json["made"]
    assert [each["instant_at"] for each in filled] == ["2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z"]
    again = (await asker.ask("POST", f"{PATH}/backfill", body)).json["made"]
    assert [(each["task_id"], each["replayed"]) for each in again] == [(each["task_id"], True) for each in filled]
    fires = (await asker.ask("GET", f"{PATH}/fires", query=(("limit", "2"),))).json
    assert [each["cause"] for each in fires["fires"]] == ["trigger", "backfill"]
    rest = (await asker.ask("GET", f"{PATH}/fires", query=(("cursor", fires["cursor"]),))).json
    assert [each["first_at"] for each in rest["fires"]] == ["2026-03-28T02:00:00Z"]
    assert (await asker.ask("GET", f"{PATH}/fires", query=(("cursor", "x"),))).status == 400


async def test_a_trigger_with_an_idempotency_key_makes_one_however_often_it_is_sent(asker: Asker):
    await put(asker)
    headers = {"idempotency-key": "once"}
    first = await asker.ask("POST", f"{PATH}/trigger", headers=headers)
    assert (first.status, first.json["replayed"]) == (202, False)
    asker.clock.move(5)
    again = await asker.ask("POST", f"{PATH}/trigger", headers=headers)
    assert (again.status, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json == {**first.json, "replayed": True}
    await put(asker, task={"kind": "email.send", "payload": {"n": [2]}})
    other = await asker.ask("POST", f"{PATH}/trigger", headers=headers)
    assert (other.status, other.json["code"]) == (409, "idempotency_conflict")
    assert (await asker.ask("POST", f"{PATH}/trigger", headers={"idempotency-key": "k" * 300})).status == 400


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"start": "2026-03-28T00:00:00Z"}, 422),
        ({"start": "2026-03-28T00:00:00Z", "end": "2026-03-28T00:00:00Z"}, 422),
        ({"start": "2026-03-28T00:00:00Z", "end": "9000-03-28T00:00:00Z"}, 422),
        ({"start": "0001-01-01T00:00:00Z", "end": "2026-03-28T00:00:00Z"}, 422),
        ({"start": "0001-01-01T00:00:00Z", "end": "0001-01-02T00:00:00Z"}, 200),
        ({"start": "2026-03-28T00:00:00", "end": "2026-03-29T00:00:00Z"}, 400),
        ({"start": "2026-02-30T00:00:00Z", "end": "2026-03-29T00:00:00Z"}, 422),
    ],
)
async def test_a_backfill_of_what_is_no_range_is_refused(body: Any, status: int, asker: Asker):
    await put(asker)
    assert (await asker.ask("POST", f"{PATH}/backfill", body)).status == status


async def test_a_preview_tells_the_next_instants(asker: Asker):
    await put(asker)
    query = (("count", "2"), ("after", "2026-03-28T12:00:00Z"))
    shown = (await asker.ask("GET", f"{PATH}/preview", query=query)).json
    assert shown == {"instants": ["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"]}
    for after in ("9999-12-31T00:00:00Z", "9998-12-31T12:00:00Z"):
        shown = (await asker.ask("GET", f"{PATH}/preview", query=(("count", "5"), ("after", after)))).json
        assert shown == {"instants": []}
    for query in (
        (("count", "0"),),
        (("count", "1001"),),
        (("after", "yesterday"),),
        (("after", "2026-03-28T12:00:00"),),
    ):
        assert (await asker.ask("GET", f"{PATH}/preview", query=query)).status == 400


async def test_a_schedule_of_a_unique_task_says_so_and_makes_none_beside_the_one_there_is(asker: Asker):
    task = {**BODY["task"], "unique": {"by": "n", "on_conflict": "return_existing"}}
    shown = await put(asker, task=task)
    assert shown["definition"]["task"]["unique"]["on_conflict"] == "return_existing"
    first = await asker.ask("POST", f"{PATH}/trigger", {})
    asker.clock.move(1)
    again = await asker.ask("POST", f"{PATH}/trigger", {})
    assert again.status == 409
    assert (again.json["code"], again.json["task_id"]) == ("unique_conflict", first.json["task_id"])
