"""A client without a network: requests go straight into the gateway, answers come straight out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from perdure.ambient import Chance, Ids
from perdure.engine.requests import Principal
from perdure.gateway.access import LocalAccess
from perdure.gateway.gateway import Gateway, Surroundings
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.operating_handlers import Told
from perdure.settings import Settings
from perdure.telemetry.metrics import Metrics
from perdure.telemetry.observed import ObservedOperations
from perdure.testing import VirtualClock
from perdure.wiring import System, open_system

BY = Principal("app")


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.data)


@dataclass
class Asker:
    gateway: Any
    system: System
    clock: VirtualClock
    metrics: Metrics
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it, and the client of a request that waits has gone away."""

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        data: bytes | None = None,
        query: Any = (),
        headers: dict[str, str] | None = None,
        client: tuple[str, int] | None = ("127.0.0.1", 50_000),
        pieces: list[bytes] | None = None,
    ) -> Answered:
        """One request. `body` is sent as JSON, `data` as it is, `pieces` one after the other."""
        sent = msgspec.json.encode(body) if body is not None else (data or b"")
        said = {"host": "127.0.0.1:7373", "content-length": str(len(sent)), **(headers or {})}
        if sent and "content-type" not in said:
            said["content-type"] = "application/json"
        if pieces is not None:
            del said["content-length"]
        text = urlencode(query, doseq=True)
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": quote(path, safe="/%").encode(),
            "root_path": "",
            "query_string": text.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in said.items() if value],
            "client": client,
        }
        left = list(pieces) if pieces is not None else [sent]
        answer = Answered(0, {}, b"")

        async def receive() -> Any:
            if left:
                return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}
            await self.leave.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                answer.data += message.get("body", b"")

        await self.gateway(scope, receive, send)
        return answer


@contextlib.asynccontextmanager
async def open_asker(**limits: Any) -> AsyncIterator[Asker]:
    clock = VirtualClock()
    system = await open_system(
        Settings(store=":memory:"), clock=clock, ids=Ids(clock, Chance(1).bits), chance=Chance(1), inline=True
    )
    metrics = Metrics(clock, "0.0")
    operations: Any = ObservedOperations(system.engine, metrics)

    async def render() -> bytes:
        views = system.engine.views
        return metrics.render(await views.overview("default"), clock.wall_us(), await views.breakers("default"))

    gateway = Gateway(
        Surroundings(
            operations=operations,
            access=LocalAccess(BY),
            principal=BY,
            limits=GatewayLimits(**limits),
            observer=metrics,
            metrics=render,
            notices=system.own_store().notices,
            of_itself=Told("0.0", {"lease": 60.0}, {"body_max_bytes": 1}),
            clock=clock,
            ids=system.ids,
        )
    )
    try:
        async with gateway:
            yield Asker(gateway, system, clock, metrics)
    finally:
        await system.close()
