"""A claim that waits is its worker's sign of life, and hears of the worker's orders."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.asking import Asker
from gateway.lives import REQUEST, WORKER, registered, submitted
from perdure.errors import StoreUnreachable
from perdure.gateway.hints import Seen
from perdure.gateway.presence import Presence
from perdure.store.ledger import WorkerOrder
from perdure.store.wakeups import Topic

SECOND = "0198c5a4-7f3e-7abc-8def-000000000002"
WORK, PAUSE, DRAIN = WorkerOrder.WORK, WorkerOrder.PAUSE, WorkerOrder.DRAIN


class Registry:
    """Workers with their orders, and how often each was written and looked up."""

    def __init__(self) -> None:
        self.orders: dict[str, WorkerOrder] = {}
        self.writes: list[set[str]] = []
        self.looks: list[set[str]] = []
        self.looked = asyncio.Event()
        self.away = False

    async def workers_seen(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        if self.away:
            raise StoreUnreachable("away")
        self.writes.append(set(worker_ids))
        return [self.orders.get(each, WORK) for each in worker_ids]

    async def worker_orders(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        self.looks.append(set(worker_ids))
        self.looked.set()
        return [self.orders.get(each, WORK) for each in worker_ids]


class ControlHints:
    """Hints that come when `hint` says so."""

    def __init__(self) -> None:
        self.seen = Seen(0, 0)
        self._changed = asyncio.Event()

    def hint(self) -> None:
        self.seen = Seen(0, self.seen.control + 1)
        self._changed.set()

    async def next(self, after: Seen, topics: Topic, seconds: float) -> Seen:
        while self.seen == after:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                break
        return self.seen


def presence_of(registry: Registry, hints: Any = None, active: float = 120.0) -> Presence:
    return Presence(registry, hints or ControlHints(), active)


async def test_many_who_wait_are_written_together_and_no_more_often_than_is_needed():
    registry = Registry()
    presence = presence_of(registry)
    with presence.waiting("a", WORK), presence.waiting("b", WORK):
        await presence.note()
        await presence.note()
    assert registry.writes == [{"a", "b"}]


async def test_a_worker_that_is_noted_as_there_already_is_not_written_again():
    registry = Registry()
    presence = presence_of(registry)
    presence.know("a", WORK)
    with presence.waiting("a", WORK):
        await presence.note()
    assert registry.writes == []


async def test_a_claim_that_was_answered_at_once_is_a_sign_too():
    registry = Registry()
    presence = presence_of(registry)
    presence.sign("a")
    await presence.note()
    assert registry.writes == [{"a"}]


async def test_who_waits_no_more_gives_no_sign():
    registry = Registry()
    presence = presence_of(registry, active=0.0)
    with presence.waiting("a", WORK):
        await presence.note()
    await presence.note()
    assert registry.writes == [{"a"}]


async def test_the_shorter_a_worker_counts_as_alive_the_more_often_it_is_written():
    registry = Registry()
    presence = presence_of(registry, active=0.0)
    with presence.waiting("a", WORK):
        await presence.note()
        await presence.note()
    assert registry.writes == [{"a"}, {"a"}]


async def test_an_order_ends_the_waits_of_its_worker_and_of_nobody_else():
    registry, hints = Registry(), ControlHints()
    presence = presence_of(registry, hints)
    presence.know("a", WORK)
    presence.know("b", WORK)
    presence.start()
    with presence.waiting("a", WORK) as first, presence.waiting("b", WORK) as second:
        await registry.looked.wait()
        registry.orders["b"] = DRAIN
        hints.hint()
        async with asyncio.timeout(10):
            await second
        assert not first.done()
    assert presence.order_of("b") is DRAIN
    await presence.stop()


async def test_who_knows_of_its_order_waits_until_there_is_another():
    registry = Registry()
    registry.orders["a"] = PAUSE
    presence = presence_of(registry)
    with presence.waiting("a", PAUSE) as news:
        await presence.note()
        assert not news.done()
        presence.know("a", WORK)
        assert news.done()


async def test_who_does_not_say_what_it_knows_is_not_disturbed():
    presence = presence_of(Registry())
    presence.know("a", DRAIN)
    with presence.waiting("a", None) as news:
        presence.know("a", WORK)
        assert not news.done()


async def test_signs_go_on_after_the_store_was_away(monkeypatch: pytest.MonkeyPatch):
    registry, hints = Registry(), ControlHints()
    registry.away = True
    presence = presence_of(registry, hints, active=0.1)
    presence.start()
    with presence.waiting("a", WORK):
        await asyncio.sleep(0)
        registry.away = False
        async with asyncio.timeout(10):
            while not registry.writes:
                await asyncio.sleep(0.001)
    await presence.stop()


async def test_a_defect_stops_no_signs_and_is_no_success(caplog: pytest.LogCaptureFixture):
    registry, failed, noted = Registry(), asyncio.Event(), asyncio.Event()

    async def defect(worker_ids: Sequence[str]) -> list[WorkerOrder]:
        failed.set()
        raise KeyError("a defect")

    hints: Any = ControlHints()
    presence = Presence(registry, hints, 0.1, noted.set)
    whole, registry.workers_seen = registry.workers_seen, defect  # type: ignore[method-assign]
    presence.start()
    with presence.waiting("a", WORK):
        async with asyncio.timeout(10):
            await failed.wait()
        assert not noted.is_set()
        registry.workers_seen = whole  # type: ignore[method-assign]
        async with asyncio.timeout(10):
            await noted.wait()
    assert registry.writes
    assert "please report it" in caplog.text
    await presence.stop()


async def test_the_gateway_is_not_ready_while_no_signs_can_be_written(asker: Asker):
    await asker.gateway.readiness.probing["reads"].ask()
    await asker.gateway.readiness.probing["writes"].ask()
    assert asker.gateway.readiness.checks()["workers"] == "ok"
    asker.clock.move(31_000_000)
    assert asker.gateway.readiness.checks()["workers"] == "no success for 31 s"
    asker.gateway._noted_workers()
    assert asker.gateway.readiness.checks()["workers"] == "ok"


def claim_body(number: int, order: str | None) -> dict[str, Any]:
    return {"worker_id": WORKER, "count": 1, "request_id": REQUEST.format(number), "wait": 30, "order": order}


@pytest.mark.parametrize("order", ["drain", "pause"])
async def test_an_operators_order_answers_the_claim_that_waits(asker: Asker, order: str):
    await registered(asker)
    waiting = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(1, "work")))
    async with asyncio.timeout(10):
        while not asker.gateway._pool._lines:
            await asyncio.sleep(0)
        assert (await asker.ask("POST", f"/v1/workers/{WORKER}/{order}")).status < 300
        answer = await waiting
        assert (answer.json["leases"], answer.json["order"]) == ([], order)
        again = await asker.ask("POST", "/v1/worker/claim", {**claim_body(2, "work"), "count": 2})
        assert again.json["order"] == order


async def test_a_waiting_worker_is_seen_without_a_heartbeat(asker: Asker):
    await registered(asker)
    [before] = (await asker.ask("GET", "/v1/workers")).json["workers"]
    waiting = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(1, "work")))
    while not asker.gateway._pool._lines:
        await asyncio.sleep(0)
    asker.clock.move(60_000_000)
    asker.gateway._presence._written.clear()
    asker.gateway._presence._every = 0.0
    await asker.gateway._presence.note()
    [after] = (await asker.ask("GET", "/v1/workers")).json["workers"]
    assert after["seen_at"] > before["seen_at"]
    asker.leave.set()
    await waiting
    assert Counter(asker.gateway._presence._waits.keys()) == Counter()


async def test_a_claim_does_not_ask_the_store_while_others_wait_for_the_same(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
):
    asked = []
    claim = asker.system.engine.claim

    async def noted(worker_id: str, *args: Any, **options: Any) -> Any:
        asked.append(worker_id)
        return await claim(worker_id, *args, **options)

    monkeypatch.setattr(asker.system.engine, "claim", noted)
    await registered(asker)
    await registered(asker, SECOND)
    first = asyncio.create_task(asker.ask("POST", "/v1/worker/claim", claim_body(1, "work")))
    async with asyncio.timeout(10):
        while not asker.gateway._pool._lines:
            await asyncio.sleep(0)
        second = asyncio.create_task(
            asker.ask("POST", "/v1/worker/claim", {**claim_body(2, "work"), "worker_id": SECOND})
        )
        while sum(map(len, asker.gateway._pool._lines.values())) < 2:
            await asyncio.sleep(0)
        assert SECOND not in asked
        ids = {await submitted(asker), await submitted(asker)}
        answers = [await first, await second]
    assert {lease["hold"]["task_id"] for each in answers for lease in each.json["leases"]} == ids
