"""The worker protocol: claims that wait and repeat, stale writes, hints."""

import asyncio
from typing import Any

import msgspec

from gateway.asking import Asker
from gateway.lives import REQUEST, WORKER, claimed, held, registered, submitted
from perdure.domain.limits import LEASE_DEFAULT_US

SECOND = "0198c5a4-7f3e-7abc-8def-000000000002"


def claim_body(number: int, *, wait: float = 0, worker: str = WORKER, count: int = 1) -> dict[str, Any]:
    return {"worker_id": worker, "count": count, "request_id": REQUEST.format(number), "wait": wait}


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def lapse(asker: Asker) -> None:
    """Let all leases run out and be found."""
    asker.clock.move(LEASE_DEFAULT_US + 1_000_000)
    for duty in asker.system.engine.duties():
        if duty.name == "lose":
            await duty.run_once(asker.clock.monotonic_us())


async def test_a_claim_whose_answer_was_lost_gets_the_same_attempts_again(asker: Asker):
    for _ in range(4):
        await submitted(asker)
    await registered(asker)
    first = await claimed(asker, 1, count=2)
    again = await claimed(asker, 1, count=2)
    other = await claimed(asker, 2, count=2)
    assert again == first
    assert {lease["hold"]["attempt_id"] for lease in other}.isdisjoint(lease["hold"]["attempt_id"] for lease in first)


async def test_a_waiting_claim_is_answered_when_work_comes(asker: Asker):
    await registered(asker)
    waiting = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=30)))
    await until(lambda: asker.gateway._pool._lines)
    assert not waiting.done()
    task_id = await submitted(asker)
    answer = await asyncio.wait_for(waiting, 10)
    assert [lease["hold"]["task_id"] for lease in answer.json["leases"]] == [task_id]


async def test_one_hint_serves_one_worker_and_the_next_waits_on(asker: Asker):
    await registered(asker)
    await registered(asker, SECOND)
    first = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=30)))
    second = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(2, wait=30, worker=SECOND)))
    await until(lambda: sum(len(line) for line in asker.gateway._pool._lines.values()) == 2)
    await submitted(asker)
    done, waiting = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED, timeout=10)
    assert len(done) == len(waiting) == 1
    await submitted(asker)
    await asyncio.wait_for(next(iter(waiting)), 10)


async def test_what_was_claimed_for_a_client_that_went_away_is_handed_back_at_once(asker: Asker):
    task_id = await submitted(asker)
    await registered(asker)
    asker.leave.set()
    await asker.ask("POST", "/v1/worker/claim", claim_body(1))
    asker.leave.clear()
    assert (await asker.ask("GET", f"/v1/tasks/{task_id}")).json["state"] == "queued"
    [lease] = await claimed(asker, 1)
    attempts = (await asker.ask("GET", f"/v1/tasks/{task_id}/attempts")).json["attempts"]
    assert [each["state"] for each in attempts] == ["released", "leased"]
    assert lease["hold"]["attempt_id"] == attempts[1]["id"] != attempts[0]["id"]


async def test_a_client_that_leaves_while_it_waits_leases_nothing(asker: Asker):
    await registered(asker)
    waiting = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=30)))
    await until(lambda: asker.gateway._pool._lines)
    asker.leave.set()
    await asyncio.wait_for(waiting, 10)
    asker.leave.clear()
    task_id = await submitted(asker)
    await asyncio.sleep(0)
    assert (await asker.ask("GET", f"/v1/tasks/{task_id}")).json["state"] == "queued"


async def test_a_stale_settle_after_a_second_claim_names_the_attempt_and_changes_nothing(asker: Asker):
    stale = await held(asker, 1)
    await lapse(asker)
    await registered(asker, SECOND)
    [lease] = await claimed(asker, 2, worker=SECOND)
    path = f"/v1/tasks/{stale['task_id']}"
    before = (await asker.ask("GET", path)).json
    outcome = {"outcome": "succeeded", "result": "stale"}
    answer = await asker.ask("POST", "/v1/worker/settle-one", {"hold": stale, "outcome": outcome})
    assert answer.status == 409
    assert answer.json["code"] == "lease_lost"
    assert (answer.json["attempt_id"], answer.json["task_id"]) == (stale["attempt_id"], stale["task_id"])
    many = await asker.ask("POST", "/v1/worker/settle", {"settlements": [{"hold": stale, "outcome": outcome}]})
    [item] = many.json["answers"]
    assert (item["answer"], item["problem"]["attempt_id"]) == ("lease_lost", stale["attempt_id"])
    report = await asker.ask("POST", "/v1/worker/report", {"reports": [{"hold": stale, "progress": {"done": 1}}]})
    assert report.json["answers"][0]["problem"]["code"] == "lease_lost"
    renew = await asker.ask("POST", "/v1/worker/renew", {"renewals": [{"hold": stale, "started": True}]})
    assert renew.json == {"renewed": [None]}
    assert (await asker.ask("GET", path)).json == before
    settled = await asker.ask(
        "POST", "/v1/worker/settle-one", {"hold": lease["hold"], "outcome": {"outcome": "succeeded", "result": 2}}
    )
    assert (settled.status, settled.json["state"]) == (200, "succeeded")


async def test_the_same_settle_again_is_answered_and_applied_once(asker: Asker):
    hold = await held(asker)
    body = {"hold": hold, "outcome": {"outcome": "succeeded", "result": [1, 2]}}
    first = await asker.ask("POST", "/v1/worker/settle-one", body)
    again = await asker.ask("POST", "/v1/worker/settle-one", body)
    assert (first.json["answer"], again.json["answer"]) == ("applied", "replayed")


async def test_a_wrong_token_changes_nothing(asker: Asker):
    hold = await held(asker)
    answer = await asker.ask(
        "POST", "/v1/worker/settle-one", {"hold": {**hold, "token": "0" * 32}, "outcome": {"outcome": "stopped"}}
    )
    assert answer.status == 409


async def test_every_outcome_can_be_told(asker: Asker):
    error = {"type": "E", "message": "m"}
    for number, (outcome, state) in enumerate(
        [
            ({"outcome": "succeeded"}, "succeeded"),
            ({"outcome": "succeeded_partly", "result": {"failed": 1}}, "partially_succeeded"),
            ({"outcome": "failed", "error": error}, "retrying"),
            ({"outcome": "failed", "error": error, "permanent": True}, "dead_lettered"),
            ({"outcome": "snoozed", "delay_us": 5_000_000}, "pending"),
            ({"outcome": "gave_up", "reason": "no need"}, "cancelled"),
            ({"outcome": "handed_back"}, "queued"),
            ({"outcome": "succeeded", "result": "x" * 300_000}, "dead_lettered"),
        ]
    ):
        hold = await held(asker, 100 + number)
        answer = await asker.ask("POST", "/v1/worker/settle-one", {"hold": hold, "outcome": outcome})
        assert (answer.status, answer.json["state"]) == (200, state), outcome
        if state == "queued":
            await claimed(asker, 200 + number)


async def test_a_result_that_cannot_be_stored_fails_its_task_for_good(asker: Asker):
    hold = await held(asker)
    told = msgspec.json.encode({"hold": hold, "outcome": {"outcome": "succeeded", "result": "HERE"}})
    data = told.replace(b'"HERE"', b"9" * 5_000)
    answer = await asker.ask("POST", "/v1/worker/settle-one", data=data)
    assert answer.json["state"] == "dead_lettered"
    task = (await asker.ask("GET", f"/v1/tasks/{hold['task_id']}")).json
    assert task["reason"] == "bad_result"


async def test_hints_are_kept_between_two_questions(asker: Asker):
    first = (await asker.ask("GET", "/v1/worker/hints")).json
    assert first["topics"] == ["ready", "control"]
    await submitted(asker)
    await until(lambda: asker.gateway._hints.seen.ready > 0)
    second = (await asker.ask("GET", "/v1/worker/hints", query={"after": first["cursor"], "wait": 30})).json
    assert second["topics"] == ["ready"]
    third = (await asker.ask("GET", "/v1/worker/hints", query={"after": second["cursor"], "wait": 0})).json
    assert third == {"topics": [], "cursor": second["cursor"]}
    foreign = (await asker.ask("GET", "/v1/worker/hints", query={"after": "another.1.1", "wait": 30})).json
    assert foreign["topics"] == ["ready", "control"]


async def test_parts_and_progress_reach_the_task(asker: Asker):
    hold = await held(asker)
    part = {"sequence": 1, "key": "a", "named": False, "sha256": "0" * 64, "data": {"row": 1}, "final": True}
    reports = [{"hold": hold, "progress": {"done": 1, "total": 2}, "phase": "executing"}, {"hold": hold, "part": part}]
    answer = await asker.ask("POST", "/v1/worker/report", {"reports": reports})
    assert [each["problem"] for each in answer.json["answers"]] == [None, None]
    task = (await asker.ask("GET", f"/v1/tasks/{hold['task_id']}")).json
    assert (task["state"], task["progress"], task["phase"]) == ("running", {"done": 1, "total": 2}, "executing")
    [told] = (await asker.ask("GET", f"/v1/tasks/{hold['task_id']}/parts")).json["parts"]
    assert told["data"] == {"row": 1}


async def test_a_worker_may_serve_its_own_organization_only(asker: Asker):
    body = {"id": WORKER, "name": "w", "kinds": ["k"], "queues": ["q"], "capacity": 1, "organizations": ["another"]}
    answer = await asker.ask("POST", "/v1/worker/register", body)
    assert (answer.status, answer.json["code"]) == (403, "forbidden")
