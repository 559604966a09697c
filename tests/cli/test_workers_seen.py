"""What is shown of workers that are there, that end, and that say nothing any more, and of the tasks that they have."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cli.conftest import Perdure
from perdure.app import App
from perdure.cli import output, worker
from perdure.engine.engine import Engine
from perdure.engine.requests import TaskRequest
from perdure.store.ledger import WorkerInfo

WORKER = "01900000-0000-7000-8000-000000000001"


def on_engine(act: Callable[[Engine, App], Awaitable[None]]) -> None:
    """Do something in the store of the test, as a worker would."""

    async def run() -> None:
        app = App()
        async with app:
            engine = (await app.system()).engine
            assert isinstance(engine, Engine)
            await act(engine, app)

    asyncio.run(run())


async def register(engine: Engine, app: App) -> None:
    info = WorkerInfo(WORKER, "w", "host", 7, "1", "", ("k",), ("default",), ("default",), (), 4)
    await engine.register(info)


async def drain(engine: Engine, app: App) -> None:
    await engine.heartbeat(WORKER, 0)


async def claim_one(engine: Engine, app: App) -> None:
    await register(engine, app)
    await engine.submit([TaskRequest(kind="k")], app.principal)
    assert len(await engine.claim(WORKER, 1)) == 1


async def leave(engine: Engine, app: App) -> None:
    await engine.leave(WORKER)


def state(perdure: Perdure) -> str:
    head, row = perdure("worker", "list", "--all").out.splitlines()
    return row[head.index("STATE") : head.index("ORDER")].strip()


def test_a_worker_is_live_drains_is_silent_and_has_left(perdure: Perdure, monkeypatch: pytest.MonkeyPatch) -> None:
    on_engine(register)
    assert state(perdure) == "live"
    on_engine(drain)
    assert state(perdure) == "draining"
    monkeypatch.setattr(worker, "SILENT_SECONDS", -1.0)
    assert state(perdure).startswith("silent for ")
    on_engine(leave)
    assert state(perdure) == "left"


def test_a_task_shows_until_when_it_is_leased_and_when_its_worker_was_seen(perdure: Perdure) -> None:
    on_engine(claim_one)
    [task] = perdure("task", "list", "--json").json["tasks"]
    [leased] = [line for line in perdure("task", "show", task["id"]).out.splitlines() if line.startswith("leased ")]
    assert "until 20" in leased
    assert "unless renewed; its worker was last seen 20" in leased


def test_what_is_long_stands_under_a_worker_where_the_terminal_is_narrow(
    perdure: Perdure, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_engine(register)
    assert len(perdure("worker", "list").out.splitlines()) == 2
    monkeypatch.setattr(output, "PIPE_COLUMNS", 80)
    lines = perdure("worker", "list").out.splitlines()
    assert lines[0].split() == ["ID", "NAME", "STATE", "HOLDS", "MAY", "HOLD"]
    assert lines[1].split() == [WORKER, "w", "live", "0", "tasks", "4"]
    assert "    kinds: k" in lines
    assert max(map(len, lines)) <= 80
