"""Serves a gateway on its own listening socket, and stops in order."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace

import uvicorn

from perdure.ambient import Clock
from perdure.errors import Misuse
from perdure.gateway.access import Address, check_listen
from perdure.gateway.files import room_for
from perdure.gateway.gateway import Gateway
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.loop_watch import BEAT_SECONDS, LoopWatch
from perdure.gateway.protocol import LIMITS, BoundedProtocol

BACKLOG = 2_048
SHUTDOWN_SECONDS = 10
"""How long requests under way may take when the gateway stops."""

_log = logging.getLogger("perdure.gateway")


class _Server(uvicorn.Server):
    """uvicorn's server; signals belong to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class GatewayServer:
    """`async with GatewayServer(...) as server:` serves until the block ends. Raises `Misuse` where it may not listen.

    Stopping: be not ready, take no new connections, answer those who wait, finish what is under way, end.
    """

    def __init__(self, gateway: Gateway, address: Address, limits: GatewayLimits, clock: Clock) -> None:
        check_listen(address)
        self._gateway = gateway
        self._address = address
        self._limits = limits
        self._clock = clock
        self._stack = contextlib.AsyncExitStack()
        self._server: _Server | None = None
        self._watch: LoopWatch | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.url = ""
        """Where it listens, once it does."""

    async def __aenter__(self) -> "GatewayServer":
        listening = open_socket(self._address)
        limits = self._within_files()
        host, port = listening.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        await self._gateway.__aenter__()
        config = uvicorn.Config(
            self._gateway,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=True,
            backlog=BACKLOG,
            timeout_keep_alive=round(self._limits.idle_timeout),
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        server = self._server = _Server(config)
        config.load()
        watch = self._watch = LoopWatch([listening], self._clock)
        watch.start()
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(_serve(server, listening, limits, started), name="perdure-gateway-server")
        beating = asyncio.create_task(_beat(watch), name="perdure-gateway-beat")
        self._tasks = [serving, beating]
        await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await self._let_go()
            serving.result()
        _log.info("the gateway listens at %s", self.url)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop in order. Harmless when stopped already."""
        if self._server is None:
            return
        self._gateway.readiness.close()
        self._server.should_exit = True
        await self._gateway.close()
        await asyncio.wait([self._tasks[0]])
        await self._let_go()

    def _within_files(self) -> GatewayLimits:
        """The limits, with no more connections than the system has files for."""
        room = room_for(self._limits.connections)
        if room < self._limits.connections:
            _log.warning(
                "the gateway holds at most %d connections, not %d: this process may not open more files (ulimit -n)",
                room,
                self._limits.connections,
            )
        return replace(self._limits, connections=room)

    async def _let_go(self) -> None:
        self._server = None
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        if self._watch is not None:
            self._watch.stop()
        await self._gateway.close()


def open_socket(address: Address) -> socket.socket:
    """A listening socket. Raises `Misuse` when the address cannot be had."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise Misuse(
            f"the gateway cannot listen at {address.host}:{address.port}: {error.strerror}; choose another address"
            " with --listen or PERDURE_LISTEN",
            listen=f"{address.host}:{address.port}",
        ) from None
    return listening


async def _serve(
    server: _Server, listening: socket.socket, limits: GatewayLimits, started: "asyncio.Future[None]"
) -> None:
    server.lifespan = server.config.lifespan_class(server.config)
    server.lifespan.state[LIMITS] = limits
    await server.startup(sockets=[listening])
    started.set_result(None)
    await server.main_loop()
    await server.shutdown(sockets=[listening])


async def _beat(watch: LoopWatch) -> None:
    while True:
        watch.beat()
        await asyncio.sleep(BEAT_SECONDS)
