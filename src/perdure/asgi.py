"""The gateway as an ASGI application for anybody's server: `app.mount("/perdure", perdure.asgi.asgi(perdure_app))`."""

import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from perdure.app.app import App
from perdure.errors import Misuse
from perdure.gateway.gateway import Gateway
from perdure.gateway.limits import GatewayLimits
from perdure.serving import Watched

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class MountedGateway:
    """An ASGI application. It opens with the first request or the server's lifespan, and `close` lets go.

    Only this machine is served, as by `perdure serve`: requests from elsewhere are refused. With `duties`, the
    background duties run beside it, so that no other process is needed for them.
    """

    def __init__(self, app: App, *, duties: bool = False, limits: GatewayLimits | None = None) -> None:
        self._app = app
        self._duties = duties
        self._limits = limits or GatewayLimits()
        self._stack = contextlib.AsyncExitStack()
        self._gateway: Gateway | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        await (await self._opened())(scope, receive, send)

    async def __aenter__(self) -> "MountedGateway":
        await self._opened()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what was started. The app stays open; a later request opens again."""
        self._gateway = None
        stack, self._stack = self._stack, contextlib.AsyncExitStack()
        await stack.aclose()

    async def _opened(self) -> Gateway:
        if self._gateway is None:
            system = await self._app.system()
            if system.store is None:
                raise Misuse("a gateway serves a store, not another gateway: give the app a store")
            watched = Watched.over(system)
            gateway = watched.gateway(self._app, self._limits)
            if self._gateway is None:
                self._gateway = gateway
                await self._stack.enter_async_context(gateway)
                if self._duties:
                    await self._stack.enter_async_context(system.engine.duty_runner())
        return self._gateway

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._opened()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})


def asgi(app: App, *, duties: bool = False) -> MountedGateway:
    """The gateway of an app, to be mounted or served."""
    return MountedGateway(app, duties=duties)
