"""Views go by the settings: who is alive, and until when a task without a worker for its kind is waited for."""

from pathlib import Path

from conformance.stores import ManualClock
from perdure.domain.limits import SECOND_US
from perdure.domain.why import Obstacle
from perdure.engine.requests import Principal, TaskRequest
from perdure.settings import Settings
from perdure.store.ledger import WorkerInfo
from perdure.wiring import open_system

BY = Principal("somebody", "default")


def worker(*kinds: str) -> WorkerInfo:
    return WorkerInfo("w", "w", "host", 1, "1", "", kinds, ("default",), ("default",), (), 5)


async def test_who_is_alive_and_what_is_unroutable_follow_the_settings(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = Settings(store=str(tmp_path / "p.db"), worker_active=10.0, unroutable_after=30.0)
    system = await open_system(settings, clock=clock, inline=True)
    engine = system.engine

    async def told(task_id: str) -> Obstacle:
        [obstacle] = await engine.views.why("default", task_id)
        return obstacle

    try:
        [task] = await engine.submit([TaskRequest(kind="mail", payload={})], BY)
        task_id = getattr(task, "id", "")
        await system.own_store().ledger.register(worker("other"))
        await system.own_store().ledger.fail_unroutable(30 * SECOND_US, 10 * SECOND_US, 10)
        assert (await told(task_id)).until_us == clock.wall_us() + 30 * SECOND_US
        await system.own_store().ledger.register(worker("mail"))
        assert (await engine.views.queues("default"))[0].missing_kinds == ()
        clock.advance(11 * SECOND_US)
        assert (await told(task_id)).text == "no live worker serves queue 'default'"
        assert (await engine.views.queues("default"))[0].missing_kinds == ("mail",)
    finally:
        await system.close()
