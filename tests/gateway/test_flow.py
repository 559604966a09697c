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
