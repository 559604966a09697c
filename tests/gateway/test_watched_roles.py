"""A worker's or a sweeper's process is watched where `metrics_listen` says: metrics and health, nothing else."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.serving import PATIENCE, exchange, port_of
from perdure.app.app import App
from perdure.errors import Invalid, Misuse
from perdure.gateway.access import Address
from perdure.serving import Serving
from perdure.settings import Settings


@contextlib.asynccontextmanager
async def serving(folder: Path, role: Any, **settings: Any) -> AsyncIterator[Serving]:
    app = App(folder / "perdure.db", settings=Settings(**settings))
    served = Serving(app, role, Address("127.0.0.1", 0))
    running = asyncio.create_task(served.run())
    began = asyncio.create_task(served.listening.wait())
    await asyncio.wait({running, began}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
    try:
        if running.done():
            running.result()
        yield served
    finally:
        served.stop()
        began.cancel()
        await asyncio.wait({running}, timeout=PATIENCE)
        await app.close()


async def get(port: int, path: str) -> str:
    request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    return (await exchange(port, request.encode())).decode()


@pytest.mark.parametrize("role", ["gateway", "all"])
async def test_a_gateway_alone_says_who_runs_the_duties(role: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "perdure")
    async with serving(tmp_path, role):
        assert ("no schedule fires" in caplog.text) == (role == "gateway")


@pytest.mark.parametrize(("role", "what"), [("sweeper", "duties"), ("worker", "worker")])
async def test_a_role_without_a_gateway_is_watched(role: str, what: str, tmp_path: Path):
    async with serving(tmp_path, role, metrics_listen="127.0.0.1:0") as served:
        port = port_of(served)
        async with asyncio.timeout(PATIENCE):
            while not (await get(port, "/readyz")).startswith("HTTP/1.1 200"):
                await asyncio.sleep(0.02)
        assert f'"{what}":"ok"' in await get(port, "/readyz")
        assert (await get(port, "/healthz")).startswith("HTTP/1.1 200")
        metrics = await get(port, "/metrics")
        if role == "sweeper":
            assert re.search(r'perdure_duty_runs_total\{duty="expire",result="ok"\} [1-9]', metrics)
        for path in ("/v1/tasks", "/v1/worker/claim", "/docs", "/openapi.json"):
            assert (await get(port, path)).startswith("HTTP/1.1 404")


async def test_unless_it_is_said_nothing_listens(tmp_path: Path):
    async with serving(tmp_path, "sweeper") as served:
        assert served.url is None


@pytest.mark.parametrize(("listen", "error"), [("nowhere", Misuse), ("0.0.0.0:0", Misuse), ("", Invalid)])
async def test_an_address_that_cannot_be_is_refused(listen: str, error: type[Exception], tmp_path: Path):
    with pytest.raises(error):
        async with serving(tmp_path, "sweeper", metrics_listen=listen):
            pass
