"""The gateway inside somebody else's application."""

import asyncio
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount

from gateway.asking import Asker
from perdure.app.app import App
from perdure.asgi import asgi


async def test_a_mounted_gateway_answers_below_its_path_and_closes_with_it(tmp_path: Path):
    app = App(tmp_path / "perdure.db")
    async with asgi(app, duties=True) as gateway:
        outer: Any = Starlette(routes=[Mount("/queue", app=gateway)])
        asker = Asker(outer, None, None, None)  # type: ignore[arg-type]
        answer = await asker.ask("POST", "/queue/v1/tasks", {"kind": "k"})
        assert answer.status == 202
        shown = await asker.ask("GET", f"/queue/v1/tasks/{answer.json['id']}")
        assert shown.json["kind"] == "k"
        assert (await asker.ask("GET", "/queue/nothing")).status == 404
        assert (await asker.ask("GET", "/queue/v1/tasks", client=("192.0.2.7", 1))).status == 403
    await app.close()


async def test_the_lifespan_opens_and_closes(tmp_path: Path):
    app = App(tmp_path / "perdure.db")
    gateway = asgi(app)
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    outbox: asyncio.Queue[Any] = asyncio.Queue()
    living = asyncio.create_task(gateway({"type": "lifespan"}, inbox.get, outbox.put))
    await inbox.put({"type": "lifespan.startup"})
    assert (await asyncio.wait_for(outbox.get(), 10))["type"] == "lifespan.startup.complete"
    assert (await Asker(gateway, None, None, None).ask("GET", "/healthz")).status == 200  # type: ignore[arg-type]
    await inbox.put({"type": "lifespan.shutdown"})
    assert (await asyncio.wait_for(outbox.get(), 10))["type"] == "lifespan.shutdown.complete"
    await living
    await app.close()
