"""A claim that waits at the gateway goes along with the commit that brings it work."""

import asyncio
from typing import Any

import pytest

from gateway.asking import Answered, Asker
from gateway.lives import REQUEST, WORKER, registered, submitted
from perdure.domain.attempt import Lease
from perdure.gateway.claim_line import Around, Line, StandingClaim, Wanted
from perdure.gateway.claim_pool import POLL_SECONDS
from perdure.store.claims import nothing_stands_by

SECOND = "0198c5a4-7f3e-7abc-8def-000000000002"
OTHER = "0198c5a4-7f3e-7abc-8def-000000000003"


def claim_body(number: int, *, wait: float = 30, worker: str = WORKER, count: int = 8) -> dict[str, Any]:
    return {
        "worker_id": worker,
        "count": count,
        "request_id": REQUEST.format(number),
        "wait": wait,
        "order": "work",
    }


async def waiting(asker: Asker, number: int, **more: Any) -> "asyncio.Task[Answered]":
    """A claim that waits in its line."""
    pool = asker.gateway._pool
    before = sum(map(len, pool._lines.values()))
    claim = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(number, **more)))
    async with asyncio.timeout(10):
        while sum(map(len, pool._lines.values())) == before:
            await asyncio.sleep(0)
    return claim


@pytest.fixture
def asked(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The workers for whom the store was asked in a transaction of its own."""
    names: list[str] = []
    claim = asker.system.engine.claim

    async def noted(worker_id: str, *args: Any, **options: Any) -> Any:
        names.append(worker_id)
        return await claim(worker_id, *args, **options)

    monkeypatch.setattr(asker.system.engine, "claim", noted)
    return names


def stands_by(asker: Asker) -> list[str]:
    """The workers whose claims a commit would take along."""
    store: Any = asker.system.own_store()
    return [each.item.worker_id for each in store.writer._standing._waiting]


def task_ids(answer: Answered) -> list[str]:
    return [lease["hold"]["task_id"] for lease in answer.json["leases"]]


async def state_of(asker: Asker, task_id: str) -> str:
    state: str = (await asker.ask("GET", f"/v1/tasks/{task_id}")).json["state"]
    return state


async def test_a_submit_takes_the_claim_along_that_waits(asker: Asker, asked: list[str]):
    await registered(asker)
    claim = await waiting(asker, 1)
    asked.clear()
    answered: list[str] = []
    claim.add_done_callback(lambda _: answered.append("claim"))
    submit = asyncio.create_task(submitted(asker))
    submit.add_done_callback(lambda _: answered.append("submit"))
    await asyncio.wait([claim, submit])
    await asyncio.sleep(0)
    assert task_ids(claim.result()) == [submit.result()]
    assert asked == []
    assert answered == ["claim", "submit"]
    assert stands_by(asker) == []


async def test_the_same_request_again_gets_what_it_got_while_it_stood_by(asker: Asker):
    await registered(asker)
    claim = await waiting(asker, 1)
    await submitted(asker)
    first = (await claim).json["leases"]
    again = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0))
    assert again.json["leases"] == first


async def test_one_of_a_line_stands_by_and_then_the_next(asker: Asker):
    await registered(asker)
    await registered(asker, SECOND)
    first, second = await waiting(asker, 1), await waiting(asker, 2, worker=SECOND)
    assert stands_by(asker) == [WORKER]
    one = await submitted(asker)
    assert stands_by(asker) == [SECOND]
    two = await submitted(asker)
    assert (task_ids(await first), task_ids(await second)) == ([one], [two])


async def test_who_gets_nothing_lets_the_next_one_stand_by(asker: Asker):
    await registered(asker, capacity=1)
    await registered(asker, SECOND)
    held = await waiting(asker, 1)
    await submitted(asker)
    await held
    full, other = await waiting(asker, 2), await waiting(asker, 3, worker=SECOND)
    task_id = await submitted(asker)
    assert stands_by(asker) == [SECOND]
    more = await submitted(asker)
    assert task_ids(await other) == [task_id, more]
    assert not full.done()
    asker.leave.set()
    await full


async def test_of_each_sort_of_workers_one_stands_by(asker: Asker):
    await registered(asker)
    body = {"id": OTHER, "name": "o", "kinds": ["other"], "queues": ["default"], "capacity": 10}
    assert (await asker.ask("POST", "/v1/worker/register", body)).status == 200
    first, second = await waiting(asker, 1), await waiting(asker, 2, worker=OTHER)
    assert sorted(stands_by(asker)) == [WORKER, OTHER]
    task_id = await submitted(asker, kind="other")
    assert task_ids(await second) == [task_id]
    assert not first.done()
    other = await submitted(asker)
    assert task_ids(await first) == [other]


async def test_who_has_gone_stands_by_no_more(asker: Asker):
    await registered(asker)
    claim = await waiting(asker, 1)
    assert stands_by(asker) == [WORKER]
    asker.leave.set()
    await claim
    asker.leave.clear()
    assert stands_by(asker) == []
    assert await state_of(asker, await submitted(asker)) == "queued"


async def test_what_came_for_a_claim_that_was_cancelled_is_given_back(asker: Asker):
    await registered(asker)
    claim = await waiting(asker, 1)
    claim.cancel()
    task_id = await submitted(asker)
    await asyncio.wait([claim])
    async with asyncio.timeout(10):
        while await state_of(asker, task_id) != "queued":
            await asyncio.sleep(0)
    attempts = (await asker.ask("GET", f"/v1/tasks/{task_id}/attempts")).json["attempts"]
    assert [each["state"] for each in attempts] == ["released"]
    again = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0))
    assert task_ids(again) == [task_id]


async def settled(asker: Asker, answer: Answered) -> list[str]:
    """What the worker hears that ran what it was answered with."""
    outcome = {"outcome": "succeeded", "result": None}
    said = [{"hold": lease["hold"], "outcome": outcome} for lease in answer.json["leases"]]
    told = await asker.ask("POST", "/v1/worker/settle", {"settlements": said})
    return [each["answer"] for each in told.json["answers"]]


async def test_what_came_for_a_claim_that_was_cut_goes_to_the_same_request_that_waits(asker: Asker):
    await registered(asker)
    first, second = await waiting(asker, 1), await waiting(asker, 1)
    first.cancel()
    task_id = await submitted(asker)
    async with asyncio.timeout(POLL_SECONDS / 2):
        answer = await second
    assert task_ids(answer) == [task_id]
    assert await settled(asker, answer) == ["applied"]
    assert asker.gateway._pool._repeats._here == {}


@pytest.fixture
def slow(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set it, and the answer of the store to the first claim arrives at last."""
    arrives, claims = asyncio.Event(), 0
    claim = asker.system.engine.claim

    async def late(*args: Any, **options: Any) -> Any:
        nonlocal claims
        claims += 1
        first = claims == 1
        leases = await claim(*args, **options)
        if first:
            await arrives.wait()
        return leases

    monkeypatch.setattr(asker.system.engine, "claim", late)
    return arrives


async def under_way(asker: Asker, number: int, task_id: str) -> "asyncio.Task[Answered]":
    """A claim that has leased the task in the store, and does not know yet."""
    claim = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(number)))
    async with asyncio.timeout(10):
        while await state_of(asker, task_id) != "leased":
            await asyncio.sleep(0)
    return claim


async def test_a_claim_whose_client_has_gone_gives_nothing_back_that_the_same_request_was_answered_with(
    asker: Asker, slow: asyncio.Event
):
    await registered(asker)
    task_id = await submitted(asker)
    first = await under_way(asker, 1, task_id)
    second = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0))
    assert task_ids(second) == [task_id]
    asker.leave.set()
    slow.set()
    assert task_ids(await first) == []
    assert await settled(asker, second) == ["applied"]


async def test_the_last_one_of_a_request_that_was_not_answered_gives_back(asker: Asker, slow: asyncio.Event):
    await registered(asker)
    task_id = await submitted(asker)
    first = await under_way(asker, 1, task_id)
    asker.leave.set()
    second = await asker.ask("POST", "/v1/worker/claim", claim_body(1))
    assert (task_ids(second), await state_of(asker, task_id)) == ([], "leased")
    slow.set()
    assert (task_ids(await first), await state_of(asker, task_id)) == ([], "queued")
    asker.leave.clear()
    again = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0))
    assert task_ids(again) == [task_id]
    assert await settled(asker, again) == ["applied"]


async def test_a_request_that_comes_late_and_once_more_gives_nothing_back_that_it_was_answered_with(asker: Asker):
    await registered(asker)
    task_id = await submitted(asker)
    answer = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0))
    asker.leave.set()
    late = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0))
    assert (task_ids(answer), task_ids(late)) == ([task_id], [])
    assert await settled(asker, answer) == ["applied"]


async def test_whose_time_has_passed_stands_by_no_more(asker: Asker):
    await registered(asker)
    answer = await asker.ask("POST", "/v1/worker/claim", claim_body(1, wait=0.01))
    assert answer.json["leases"] == []
    assert stands_by(asker) == []


async def test_when_the_gateway_stops_nobody_stands_by(asker: Asker):
    await registered(asker)
    claim = await waiting(asker, 1)
    await asker.gateway.close()
    assert (await claim).json["leases"] == []
    assert stands_by(asker) == []


async def test_who_is_paused_gets_nothing_of_a_commit(asker: Asker):
    await registered(asker)
    claim = await waiting(asker, 1)
    assert (await asker.ask("POST", f"/v1/workers/{WORKER}/pause")).status < 300
    task_id = await submitted(asker)
    assert task_ids(await claim) == []
    assert await state_of(asker, task_id) == "queued"


class Asked:
    """The surroundings of a line, and what it asks of them."""

    def __init__(self, works: bool = True) -> None:
        self.standing: list[StandingClaim] = []
        self.spared: list[list[Lease]] = []
        self.line = Line(Around(self._stand_by, lambda _: works, lambda: None, lambda: None, self._spare))

    def _stand_by(self, wanted: Wanted, standing: StandingClaim) -> Any:
        self.standing.append(standing)
        return nothing_stands_by

    def _spare(self, wanted: Wanted, leases: list[Lease]) -> None:
        self.spared.append(leases)


async def test_when_nobody_knows_what_a_commit_did_the_same_request_stands_by_again():
    asked = Asked()
    place = asked.line.join(Wanted("w", 1, "r"))
    asked.standing[0].begun()
    asked.standing[0].failed()
    assert place.waits
    assert [each.place.wanted.request_id for each in asked.standing] == ["r", "r"]


async def test_nobody_stands_by_while_the_store_is_asked():
    asked = Asked()
    asked.line.hold()
    asked.line.join(Wanted("w", 1, "r"))
    assert asked.standing == []
    asked.line.let_go()
    assert len(asked.standing) == 1


async def test_who_is_not_known_to_be_ordered_to_work_does_not_stand_by():
    asked = Asked(works=False)
    asked.line.join(Wanted("w", 1, "r"))
    assert asked.standing == []


async def test_a_lease_begins_no_earlier_than_its_commit():
    asked = Asked()
    place = asked.line.join(Wanted("w", 1, "r"))
    place.asked = 0.0
    asked.standing[0].begun()
    lease: Any = object()
    asked.standing[0].taken([lease])
    assert place.asked > 0.0
    assert place.leases.result() == [lease]
