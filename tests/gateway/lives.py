"""Tasks, jobs and workers in the states that the tests of routes need, made through the gateway itself."""

from typing import Any

from gateway.asking import Asker

WORKER = "0198c5a4-7f3e-7abc-8def-000000000001"
REQUEST = "0198c5a4-7f3e-7abc-8def-00000000{:04d}"
NOBODY = "0198c5a4-7f3e-7abc-8def-0123456789ab"


async def submitted(asker: Asker, **more: Any) -> str:
    answer = await asker.ask("POST", "/v1/tasks", {"kind": "email.send", "payload": {"to": "a@b.c"}, **more})
    assert answer.status == 202, answer.data
    task_id: str = answer.json["id"]
    return task_id


async def job(asker: Asker) -> dict[str, Any]:
    tasks = [{"name": "first", "kind": "k"}, {"name": "second", "kind": "k", "depends_on": ["first"]}]
    answer = await asker.ask("POST", "/v1/jobs", {"name": "nightly", "tasks": tasks})
    assert answer.status == 202, answer.data
    return answer.json


async def registered(asker: Asker, worker: str = WORKER, capacity: int = 100) -> str:
    body = {"id": worker, "name": "w", "kinds": ["email.send", "k"], "queues": ["default"], "capacity": capacity}
    answer = await asker.ask("POST", "/v1/worker/register", body)
    assert answer.status == 200, answer.data
    return worker


async def claimed(asker: Asker, number: int = 1, count: int = 1, worker: str = WORKER) -> list[dict[str, Any]]:
    body = {"worker_id": worker, "count": count, "request_id": REQUEST.format(number)}
    answer = await asker.ask("POST", "/v1/worker/claim", body)
    assert answer.status == 200, answer.data
    leases: list[dict[str, Any]] = answer.json["leases"]
    return leases


async def held(asker: Asker, number: int = 1) -> dict[str, Any]:
    """The hold of a task that is leased."""
    await submitted(asker)
    await registered(asker)
    [lease] = await claimed(asker, number)
    hold: dict[str, Any] = lease["hold"]
    return hold


async def held_of_job(asker: Asker, number: int = 1) -> dict[str, Any]:
    """The hold of a leased task of a job."""
    await job(asker)
    await registered(asker)
    [lease] = await claimed(asker, number)
    hold: dict[str, Any] = lease["hold"]
    return hold


async def failed_job(asker: Asker) -> str:
    """The id of a job whose first task failed."""
    hold = await held_of_job(asker, 3)
    outcome = {"outcome": "failed", "error": {"type": "E", "message": "no"}, "permanent": True}
    answer = await asker.ask("POST", "/v1/worker/settle", {"settlements": [{"hold": hold, "outcome": outcome}]})
    assert answer.json["answers"] == [{"answer": "applied", "state": "dead_lettered", "problem": None}]
    task = (await asker.ask("GET", f"/v1/tasks/{hold['task_id']}")).json
    job_id: str = task["job"]
    return job_id


async def dead(asker: Asker, number: int = 1) -> str:
    """The id of a dead letter."""
    hold = await held(asker, number)
    outcome = {"outcome": "failed", "error": {"type": "E", "message": "no"}, "permanent": True}
    answer = await asker.ask("POST", "/v1/worker/settle", {"settlements": [{"hold": hold, "outcome": outcome}]})
    assert answer.json["answers"] == [{"answer": "applied", "state": "dead_lettered", "problem": None}]
    task_id: str = hold["task_id"]
    return task_id


async def stored(asker: Asker) -> Any:
    """Everything that a refusal must leave as it is."""
    answers = [await asker.ask("GET", path) for path in ("/v1/meta/tasks", "/v1/queues", "/v1/kinds", "/v1/jobs")]
    return [answer.json for answer in answers]
