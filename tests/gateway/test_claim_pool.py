"""The line of those who wait for work."""

import asyncio
from collections.abc import Callable

from perdure.gateway.claim_line import Wanted
from perdure.gateway.claim_pool import ClaimPool
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
