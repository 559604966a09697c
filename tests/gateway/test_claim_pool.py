"""The line of those who wait for work."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.gateway import claim_repeats
from perdure.gateway.claim_line import Wanted
from perdure.gateway.claim_pool import ClaimPool
from perdure.gateway.claim_repeats import Repeats
from perdure.gateway.presence import Presence
from perdure.store.claims import nothing_stands_by
from perdure.store.wakeups import Topic


class Nothing:
    """An engine without tasks, whose hints never come."""

    seen = 0

    async def claim(self, worker_id: str, count: int, request_id: str) -> list[object]:
        return []

    def stand_by(self, *claim: object) -> Callable[[], None]:
        return nothing_stands_by

    def subscribe(self) -> "Nothing":
        return self

    async def wait(self, seconds: float) -> Topic:
        await asyncio.Event().wait()
        return Topic(0)

    def close(self) -> None:
        pass


async def test_a_worker_that_is_sent_away_unserved_has_not_waited_less_than_nothing():
    nothing = Nothing()
    pool = ClaimPool(nothing, Presence(nothing, nothing, 120.0))  # type: ignore[arg-type]
    pool.start()
    claim = asyncio.create_task(pool.claim(Wanted("w", 1, "r"), 30.0, asyncio.Event().wait))  # type: ignore[arg-type]
    for _ in range(5):
        await asyncio.sleep(0)
    await pool.stop()
    claimed = await claim
    assert claimed.leases == []
    assert 0 <= claimed.waited_seconds < 30


def left(repeats: Repeats, wanted: Wanted, lease: Any) -> list[Any]:
    """What a claim is to give back whose client has gone."""
    repeats.enter(wanted)
    repeats.keep(wanted, [lease])
    repeats.keep(wanted, [lease])
    return repeats.leave(wanted)


def test_of_the_requests_that_were_answered_the_last_ones_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claim_repeats, "ANSWERED_MAX", 2)
    repeats, lease = Repeats(), SimpleNamespace(hold="h")
    old, again, new = (Wanted("w", 1, name) for name in ("old", "again", "new"))
    for wanted in (again, old, again, new):
        repeats.enter(wanted)
        repeats.answer(wanted)
        assert repeats.leave(wanted) == []
    assert [left(repeats, wanted, lease) for wanted in (old, again, new)] == [[lease], [], []]


def test_the_same_request_id_of_another_worker_is_another_request():
    repeats, lease = Repeats(), SimpleNamespace(hold="h")
    repeats.enter(Wanted("other", 1, "r"))
    repeats.answer(Wanted("other", 1, "r"))
    assert left(repeats, Wanted("w", 1, "r"), lease) == [lease]
