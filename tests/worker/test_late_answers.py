"""Claims whose answers come after their leases."""

import asyncio

from perdure.domain.attempt import Lease
from perdure.domain.outcome import HandedBack
from perdure.worker.registry import Registry
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource


async def test_a_handler_does_not_begin_when_the_claim_took_longer_than_the_lease(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    begun: list[bool] = []
    answer = source.claim

    async def touch() -> None:
        begun.append(True)

    async def claim_slowly(worker_id: str, count: int, *, wait: float = 0.0) -> list[Lease]:
        leases = await answer(worker_id, count)
        if leases and not slow:
            slow.append(True)
            await asyncio.sleep(61)
        return leases

    slow: list[bool] = []
    source.claim = claim_slowly  # type: ignore[method-assign]
    registry.add("touch", touch)
    start_worker()
    outcome = await source.ended(source.offer("touch"))
    assert outcome == HandedBack()
    assert not begun
