"""Pauses, limits and breakers over HTTP: what a user wants at night."""

import json

from gateway.asking import Asker
from gateway.lives import claimed, registered, submitted

KIND = "/v1/kinds/email.send"


async def declare(asker: Asker) -> None:
    """A kind with a breaker."""
    declared = {"kinds": [{"kind": "email.send", "breaker": {"failures": 1, "open_for": 60}}]}
    assert (await asker.ask("POST", "/v1/kinds", declared)).status == 204


async def test_a_kind_tells_how_its_breaker_stands_when_it_has_opened(asker: Asker):
    await declare(asker)
    await submitted(asker)
    await registered(asker)
    [lease] = await claimed(asker)
    outcome = {"outcome": "failed", "error": {"type": "E", "message": "no"}}
    sent = {"settlements": [{"hold": lease["hold"], "outcome": outcome}]}
    assert (await asker.ask("POST", "/v1/worker/settle", sent)).status == 200
    shown = (await asker.ask("GET", KIND)).json
    breaker = shown["breaker"]
    assert (breaker["state"], breaker["last_event"], breaker["last_failures"]) == ("open", "too_many_failed", 1)
    assert shown["kind"]["breaker"]["failures"] == 1
    waiting = await submitted(asker)
    told = (await asker.ask("GET", f"/v1/tasks/{waiting}/why")).json["obstacles"]
    assert [(each["sort"], each["until_at"]) for each in told] == [("breaker", breaker["until_at"])]
    assert await claimed(asker, 2) == []
    assert (await asker.ask("POST", f"{KIND}/reset")).json["state"] == "closed"
    assert len(await claimed(asker, 3)) == 1
    metrics = (await asker.ask("GET", "/metrics")).data.decode()
    assert 'perdure_breaker_state{kind="email.send",state="closed"} 1.0' in metrics
    assert 'perdure_breaker_trips_total{kind="email.send"} 1.0' in metrics


async def test_a_breaker_is_opened_for_as_long_as_one_says(asker: Asker):
    await declare(asker)
    assert (await asker.ask("POST", f"{KIND}/trip", {"open_for": 5})).json["state"] == "open"
    assert [each["kind"] for each in (await asker.ask("GET", "/v1/breakers")).json["breakers"]] == ["email.send"]
    refused = await asker.ask("POST", f"{KIND}/trip", {"open_for": 0})
    assert (refused.status, refused.json["field"]) == (422, "open_for")
    assert (await asker.ask("POST", "/v1/kinds/nobody/trip")).status == 404
    await asker.ask("POST", "/v1/kinds", {"kinds": [{"kind": "plain"}]})
    assert (await asker.ask("POST", "/v1/kinds/plain/trip")).status == 422


async def test_kinds_and_the_organization_are_paused_and_resumed(asker: Asker):
    await submitted(asker)
    await registered(asker)
    for path in (KIND, "/v1/organizations/default"):
        assert (await asker.ask("POST", f"{path}/pause")).status == 200
        assert await claimed(asker) == []
        assert (await asker.ask("POST", f"{path}/resume")).status == 200
    assert len(await claimed(asker)) == 1
    assert (await asker.ask("POST", "/v1/organizations/other/pause")).status == 404


async def test_limits_are_changed_one_by_one(asker: Asker):
    path = "/v1/queues/mail/limits"
    assert (await asker.ask("PATCH", path, {"concurrency": 5, "depth": 9})).json["concurrency"] == 5
    changed = (await asker.ask("PATCH", path, {"concurrency": None, "rate": 3})).json
    assert (changed["concurrency"], changed["depth"], changed["rate"]) == (None, 9, 3)
    for body in ({"concurrency": 0}, {"weight": 2}, {"paused": True}):
        refused = await asker.ask("PATCH", path, body)
        assert (refused.status, refused.json["field"]) == (422, next(iter(body))), json.dumps(body)
    weight = await asker.ask("PATCH", "/v1/organizations/default/limits", {"weight": 2})
    assert weight.json["weight"] == 2


async def test_gates_tell_who_has_their_slots_and_who_is_next(asker: Asker):
    assert (await asker.ask("GET", f"{KIND}/gates")).status == 404
    declared = {"kinds": [{"kind": "email.send", "limits": [{"concurrency": 1, "by": ["customer"]}]}]}
    assert (await asker.ask("POST", "/v1/kinds", declared)).status == 204
    assert (await asker.ask("GET", f"{KIND}/gates")).json["gates"] == []
    ids = []
    for customer in ("acme", "acme", "b c"):
        sent = {"kind": "email.send", "payload": {"customer": customer}}
        ids.append((await asker.ask("POST", "/v1/tasks", sent)).json["id"])
    await registered(asker)
    await claimed(asker)
    first, other = (await asker.ask("GET", f"{KIND}/gates")).json["gates"]
    assert (first["name"], first["key"], first["slots"]) == ("email.send by customer", '"acme"', 1)
    assert (first["taken"], first["waiting"], other["waiting"]) == (1, 1, 0)
    [holder] = first["holders"]
    assert (holder["task"], holder["state"], holder["since_at"] is not None) == (ids[0], "leased", True)
    assert holder["worker"]
    assert [each["task"] for each in first["next"]] == [ids[1]]
    for said in ("b c", '"b c"'):
        found = (await asker.ask("GET", f"{KIND}/gates", query=(("key", said),))).json["gates"]
        assert [each["key"] for each in found] == ['"b c"']
    assert (await asker.ask("GET", f"{KIND}/gates", query=(("key", "a\0"),))).json["gates"] == []
    waiting = (await asker.ask("GET", f"{KIND}/gates", query=(("waiting", "true"),))).json["gates"]
    assert [each["key"] for each in waiting] == ['"acme"']
    many = await asker.ask("GET", f"{KIND}/gates", query=(("key", "acme"),) * 101)
    assert (many.status, many.json["field"]) == (422, "key")
    page = (await asker.ask("GET", f"{KIND}/gates", query=(("limit", "1"), ("cursor", "")))).json
    rest = (await asker.ask("GET", f"{KIND}/gates", query=(("limit", "1"), ("cursor", page["cursor"])))).json
    assert [each["key"] for each in (*page["gates"], *rest["gates"])] == ['"acme"', '"b c"']
    assert rest["cursor"] is None


async def test_one_list_tells_of_everything_that_is_stopped(asker: Asker):
    assert (await asker.ask("GET", "/v1/pauses")).json["pauses"] == []
    await declare(asker)
    schedule = {"cron": "0 3 * * *", "task": {"kind": "email.send"}}
    assert (await asker.ask("PUT", "/v1/schedules/nightly", schedule)).status == 201
    for path in ("/v1/queues/mail", KIND, "/v1/organizations/default", "/v1/schedules/nightly"):
        assert (await asker.ask("POST", f"{path}/pause")).status == 200
    assert (await asker.ask("POST", f"{KIND}/trip")).status == 200
    told = (await asker.ask("GET", "/v1/pauses")).json["pauses"]
    assert {(each["type"], each["name"], each["state"]) for each in told} == {
        ("queue", "mail", "paused"),
        ("kind", "email.send", "paused"),
        ("organization", "default", "paused"),
        ("schedule", "nightly", "paused"),
        ("breaker", "email.send", "open"),
    }
    assert all(each["since_at"] and each["actor"] for each in told)
    assert [each["type"] for each in told if each["until_at"]] == ["breaker"]
