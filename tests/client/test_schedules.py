"""Schedules by a client: the same operations, the same errors."""

from pathlib import Path

import pytest

from client.serving import served
from perdure.engine.apply_schedules import ApplySchedules
from perdure.engine.definitions import NONE
from perdure.engine.requests import Principal, TaskRequest
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.errors import Invalid, NotFound, PreconditionFailed
from perdure.settings import Settings
from perdure.wiring import open_system

ME = Principal("me")
DAILY = ScheduleDefinition(cron="@daily", time_zone="Europe/Berlin", task=TaskRequest(kind="k", payload={"n": 1}))


async def test_schedules_over_http_are_as_those_of_an_engine(tmp_path: Path) -> None:
    async with served(tmp_path / "store.db") as url:
        system = await open_system(Settings(store=url))
        direct = await open_system(Settings(store=str(tmp_path / "store.db")))
        remote, here = system.engine.schedules, direct.engine.schedules
        try:
            assert await remote.get("a/b", ME) is None
            made = await remote.put("a/b", DAILY, ME, NONE)
            assert made.created
            assert await remote.get("a/b", ME) == await here.get("a/b", ME) == made._replace(created=False)
            with pytest.raises(PreconditionFailed):
                await remote.put("a/b", DAILY, ME, NONE)
            with pytest.raises(Invalid) as refusal:
                await remote.put("a/b", {"cron": "nonsense", "task": {"kind": "k"}}, ME)
            assert refusal.value.field == "cron"
            assert (await remote.pause("a/b", ME)).paused
            assert not (await remote.resume("a/b", ME)).paused
            triggered = await remote.trigger("a/b", ME)
            assert triggered.task_id
            start, end = 1_750_000_000_000_000, 1_750_180_000_000_000
            filled = await remote.backfill("a/b", start, end, ME)
            assert [each.replayed for each in filled.made] == [False, False]
            assert await remote.preview("a/b", 2, ME, start) == await here.preview("a/b", 2, ME, start)
            assert await remote.fires("a/b", ME, 2) == await here.fires("a/b", ME, 2)
            for call in (remote.pause, remote.resume, remote.trigger):
                with pytest.raises(NotFound):
                    await call("nobody", ME)
            wrong = {"x": DAILY, "y": {"cron": "nonsense", "task": {"kind": "k"}}}
            with pytest.raises(Invalid):
                await ApplySchedules(remote)("crew", wrong, ME, dry_run=True)
            planned = await ApplySchedules(remote)("crew", {"x": DAILY}, ME, dry_run=True)
            assert (await remote.page(ME, 10, None, "crew")).schedules == []
            assert await ApplySchedules(remote)("crew", {"x": DAILY}, ME) == planned
            page = await remote.page(ME, 10, None, "crew")
            assert [each.name for each in page.schedules] == ["x"]
            assert await remote.page(ME, 1) == await here.page(ME, 1)
            assert await remote.delete("a/b", ME)
            assert not await remote.delete("a/b", ME)
        finally:
            await system.close()
            await direct.close()
