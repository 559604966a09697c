"""A handler that keeps the event loop busy costs no lease: in real time, with the keeper in its thread."""

import asyncio
import time

from perdure.ambient import Ids, SystemClock
from perdure.domain.outcome import Succeeded
from perdure.domain.task import Body
from perdure.worker.loop import Worker
from perdure.worker.registry import Registry
from perdure.worker.worker_settings import WorkerSettings
from worker.scripted_source import ScriptedSource


def test_leases_are_renewed_while_a_handler_blocks_the_loop() -> None:
    async def block() -> str:
        await asyncio.sleep(0)
        time.sleep(2.5)
        return "done"

    async def main() -> ScriptedSource:
        source = ScriptedSource(lease_seconds=1.5)
        registry = Registry()
        registry.add("block", block)
        clock = SystemClock()
        worker = Worker(source, registry, clock=clock, ids=Ids(clock), settings=WorkerSettings(stop_when_idle=True))
        source.offer("block")
        await worker.run()
        return source

    source = asyncio.run(main())
    assert source.outcomes == {"task-1": Succeeded(Body(b'"done"'))}
    assert len(source.renewals) >= 3
