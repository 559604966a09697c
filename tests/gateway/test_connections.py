"""How many connections a gateway holds: as many as are asked for and the system has files for."""

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client.serving import served
from gateway.serving import exchange, port_of, serving
from perdure.app.app import App
from perdure.errors import Invalid
from perdure.gateway import files
from perdure.gateway.limits import GatewayLimits
from perdure.settings import Settings

GET = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


@pytest.fixture
def few_files() -> Iterator[int]:
    """The soft limit of this process is low while a test lasts."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_of_files_is_raised_as_far_as_is_needed(few_files: int):
    if few_files != resource.RLIM_INFINITY and few_files < 2_000:
        pytest.skip("the hard limit of this system is too low to raise anything")
    assert files.room_for(100) == 100
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 512
    assert files.room_for(1_500) == 1_500
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1_500 + files.BESIDE


def test_where_the_hard_limit_is_reached_there_is_room_for_fewer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1_000))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert files.room_for(5_000) == 1_000 - files.BESIDE


def test_a_system_that_refuses_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1_000))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert files.room_for(5_000) == 256 - files.BESIDE


async def test_the_refusal_names_the_limit_and_the_setting(tmp_path: Path):
    async with serving(tmp_path, connections=1) as served:
        port = port_of(served)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = await exchange(port, GET)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"all 1 connections of this gateway are taken" in answer
        assert b"PERDURE_CONNECTIONS" in answer
        writer.close()


def test_the_limit_is_a_setting():
    assert Settings(connections=9).connections == 9
    for bad in (0, 70_000):
        with pytest.raises(Invalid, match="connections"):
            Settings(connections=bad)


async def test_an_idle_worker_holds_two_connections_at_most(tmp_path: Path):
    async with served(tmp_path / "store.db", GatewayLimits(idle_timeout=2)) as url:
        app = App(url)

        @app.task("k")
        async def k() -> None: ...

        async with app, app.worker(heartbeat=0.1):
            await (await app.submit("k")).result(10)
            system = await app.system()
            transport = system.engine._transport  # type: ignore[attr-defined]

            def held() -> list[Any]:
                pools = [pool for each in transport._connections.values() for pool in each.pools.values()]
                return [each for pool in pools for each in (*pool._idle, *pool._used) if not each.closed]

            async with asyncio.timeout(30):
                # One for its claim, one for hints where somebody waits for them; those of its start lie idle until the
                # gateway closes them.
                while not 1 <= len([each for each in held() if each._waiting is not None]) <= 2 or _kept_elsewhere(
                    transport
                ):
                    await asyncio.sleep(0.01)


def _kept_elsewhere(transport: Any) -> list[Any]:
    """The connections of the lease keeper's own loop."""
    here = asyncio.get_running_loop()
    pools = [
        pool for (_, loop), each in transport._connections.items() if loop is not here for pool in each.pools.values()
    ]
    return [each for pool in pools for each in (*pool._idle, *pool._used) if not each.closed]
