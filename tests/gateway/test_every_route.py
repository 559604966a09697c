"""Every route of the table: a request that it takes, its answer as the table says, and requests that it refuses."""

import re
from typing import Any

import msgspec
import pytest

from gateway.asking import Asker
from gateway.lives import (
    NOBODY,
    REQUEST,
    WORKER,
    dead,
    failed_job,
    held,
    held_of_job,
    job,
    registered,
    stored,
    submitted,
)
from perdure.gateway.openapi import answers_of
from perdure.gateway.routes import BY_NAME, ROUTES

SUCCEEDED = {"outcome": "succeeded", "result": 1}
TAKING_BODIES = [route.name for route in ROUTES if route.body is not None]
WITH_VARIABLES = [route.name for route in ROUTES if re.search(r"\{(task|job|worker)_id\}", route.path)]


async def example(name: str, asker: Asker) -> tuple[str, Any, Any]:
    """(path, body, parameters) of a request that the route takes."""
    route = BY_NAME[name]
    path, body, query = route.path, None, ()
    if name in ("requeue_dead_letter", "discard_dead_letter", "purge_dead_letter"):
        path = path.replace("{task_id}", await dead(asker))
    elif "{task_id}" in path:
        path = path.replace("{task_id}", await submitted(asker))
    if name == "retry_job":
        path = path.replace("{job_id}", await failed_job(asker))
    elif "{job_id}" in path:
        path = path.replace("{job_id}", (await job(asker))["id"])
    if "{worker_id}" in path or "worker" in path or name == "list_controls":
        path = path.replace("{worker_id}", await registered(asker))
    if "{schedule}" in path:
        path = path.replace("{schedule}", "nightly")
        if route.method != "PUT" and not route.conditional:
            assert (await asker.ask("PUT", "/v1/schedules/nightly", BODIES["put_schedule"])).status == 201
    path = path.replace("{queue}", "default").replace("{code}", "invalid")
    path = path.replace("{organization}", "default").replace("{kind}", "email.send")
    if name in ("show_kind", "trip_kind", "reset_kind", "list_gates"):
        declared = {"kinds": [{"kind": "email.send", "breaker": {"failures": 5}}]}
        assert (await asker.ask("POST", "/v1/kinds", declared)).status == 204
    if route.conditional and route.method != "PUT":
        put = next(each.name for each in ROUTES if each.path == route.path and each.method == "PUT")
        assert (await asker.ask("PUT", path, BODIES[put])).status == 201
    if name in BODIES:
        body = BODIES[name]
    elif name in ("settle_one", "settle_work", "hand_back", "renew_leases", "report_work", "read_inputs"):
        body = with_hold(name, await held(asker))
    elif name == "add_tasks":
        body = {"hold": await held_of_job(asker), "tasks": [{"name": "more", "kind": "k", "before": ["second"]}]}
    elif name in ("requeue_dead_letters", "discard_dead_letters", "purge_dead_letters"):
        body = {"ids": [await dead(asker)]}
    elif name in ("cancel_tasks", "wait_for_tasks"):
        body = {"ids": [await submitted(asker)], **({"wait": 0} if name == "wait_for_tasks" else {})}
    if name == "list_controls":
        query = (("worker_id", WORKER),)
    return path, body, query


BODIES: dict[str, Any] = {
    "cancel_matching_tasks": {"kinds": ["email.send"], "labels": {"customer": "42"}, "reason": "not needed"},
    "requeue_matching_dead_letters": {"reasons": ["permanent"], "rate": 10, "ended_from": "2026-01-01T00:00:00Z"},
    "discard_matching_dead_letters": {"dry_run": True},
    "purge_matching_dead_letters": {"queues": ["default"], "discarded": True},
    "put_queue_definition": {"paused": True},
    "put_organization_definition": {"depth": 10},
    "put_kind_definition": {"timeout": 10, "retry": {"max_attempts": 2}},
    "put_schedule": {"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "task": {"kind": "email.send"}},
    "backfill_schedule": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"},
    "submit_tasks": {"kind": "email.send", "payload": {"to": "a@b.c"}, "labels": {"customer": "42"}, "delay": 5},
    "submit_job": {"name": "j", "tasks": [{"name": "a", "kind": "k"}]},
    "trip_kind": {"open_for": 60},
    "limit_queue": {"concurrency": 5, "rate": 10, "per": 2},
    "limit_organization": {"concurrency": None, "weight": 2},
    "configure_queue": {"dead_letters": False, "depth": 10},
    "declare_kinds": {"kinds": [{"kind": "email.send", "timeout": 10}]},
    "register_worker": {"id": WORKER, "name": "w", "kinds": ["k"], "queues": ["default"], "capacity": 1},
    "worker_heartbeat": {"worker_id": WORKER, "capacity": 1},
    "worker_leave": {"worker_id": WORKER},
    "claim_work": {"worker_id": WORKER, "count": 1, "request_id": REQUEST.format(9)},
}


def with_hold(name: str, hold: Any) -> Any:
    return {
        "settle_one": {"hold": hold, "outcome": SUCCEEDED},
        "settle_work": {"settlements": [{"hold": hold, "outcome": SUCCEEDED}]},
        "hand_back": {"holds": [hold]},
        "renew_leases": {"renewals": [{"hold": hold, "started": True}]},
        "report_work": {"reports": [{"hold": hold, "progress": {"done": 1}}]},
        "read_inputs": hold,
    }[name]


@pytest.mark.parametrize("name", [route.name for route in ROUTES])
async def test_a_route_takes_what_it_is_for_and_answers_as_the_table_says(name: str, asker: Asker):
    route = BY_NAME[name]
    path, body, query = await example(name, asker)
    answer = await asker.ask(route.method, path, body, query=query)
    assert answer.status in route.statuses, answer.data
    if answer.status == 204:
        assert answer.data == b""
        return
    assert answer.headers["content-type"] == route.media
    if route.answer is not None:
        msgspec.json.decode(answer.data, type=answers_of(route)[0])


@pytest.mark.parametrize("name", TAKING_BODIES)
async def test_a_body_that_is_not_as_the_table_says_is_refused_and_changes_nothing(name: str, asker: Asker):
    route = BY_NAME[name]
    path, _, query = await example(name, asker)
    before = await stored(asker)
    for data, headers, status in (
        (b"{", {}, 400),
        (b'{"x": NaN}', {}, 400),
        (b'\xff\xfe"', {}, 400),
        (b"[" * 10_000, {}, 400),
        (b'{"nobody_has_this": 1}', {}, 422),
        (b'"text"', {}, 422),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"content-type": "application/json; charset=latin-1"}, 415),
        (b"\x1f\x8b\x08", {"content-encoding": "gzip"}, 415),
        (b" " * (route.max_bytes + 1), {}, 413),
    ):
        answer = await asker.ask(route.method, path, data=data, headers=headers, query=query)
        assert answer.status == status, (data[:40], answer.data)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == status
        assert answer.json["field"]
    assert await stored(asker) == before


@pytest.mark.parametrize("name", WITH_VARIABLES)
async def test_an_id_that_is_none_is_malformed_and_one_of_nobody_is_absent(name: str, asker: Asker):
    route = BY_NAME[name]
    for value, status in (("not-an-id", 400), ("%00", 400), ("1" * 3_000, 400), (NOBODY, 404)):
        path = re.sub(r"\{\w+_id\}", value, route.path)
        answer = await asker.ask(route.method, path, {} if route.body is not None else None)
        assert answer.status == status, answer.data


@pytest.mark.parametrize("name", [route.name for route in ROUTES])
async def test_parameters_that_a_route_does_not_have_are_refused(name: str, asker: Asker):
    route = BY_NAME[name]
    path, body, _ = await example(name, asker)
    answer = await asker.ask(route.method, path, body, query=(("nobody_has_this", "1"),))
    assert answer.status == 400
    assert answer.json["field"] == "nobody_has_this"


async def test_the_root_leads_to_the_reference(asker: Asker):
    answer = await asker.ask("GET", "/")
    assert (answer.status, answer.headers["location"]) == (307, "docs")
    assert (await asker.ask("GET", "/docs")).status == 200


async def test_other_methods_are_told_which_there_are(asker: Asker):
    answer = await asker.ask("PUT", "/v1/tasks", {})
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST"
    assert (await asker.ask("GET", "/v1/nothing")).status == 404
    assert (await asker.ask("GET", "/v1/tasks/")).status == 404
    assert (await asker.ask("HEAD", "/v1/tasks")).status == 200


async def test_every_route_asks_whether_the_principal_may(asker: Asker):
    assert all(route.permission for route in ROUTES if route.path.startswith("/v1/"))
    answer = await asker.ask("GET", "/v1/tasks", client=("192.0.2.1", 5))
    assert answer.status == 403
    assert (await asker.ask("GET", "/v1/tasks", headers={"host": "evil.example"})).status == 403
    assert (await asker.ask("POST", "/v1/queues/q/purge", headers={"origin": "https://evil.example"})).status == 403
    assert (await asker.ask("GET", "/v1/tasks", headers={"host": "[::1]:7373"})).status == 200
