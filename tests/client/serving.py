"""A gateway for tests: in this process on a port of its own, or as a process that can be killed."""

import asyncio
import concurrent.futures
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from perdure.ambient import Ids, SystemClock
from perdure.engine.requests import Principal
from perdure.gateway.access import Address, LocalAccess
from perdure.gateway.gateway import Gateway, Surroundings
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.operating_handlers import Told
from perdure.gateway.server import GatewayServer
from perdure.settings import Settings
from perdure.telemetry.several import Several
from perdure.wiring import System, open_system

SRC = Path(__file__).parents[1]

LIMITS = GatewayLimits()


@contextlib.asynccontextmanager
async def gateway_of(system: System, port: int = 0, limits: GatewayLimits = LIMITS) -> AsyncIterator[GatewayServer]:
    """A gateway on an open store, without duties."""
    clock = SystemClock()
    principal = Principal("local")

    async def no_metrics() -> bytes:
        return b""

    gateway = Gateway(
        Surroundings(
            operations=system.engine,
            access=LocalAccess(principal),
            principal=principal,
            limits=limits,
            observer=Several(),
            metrics=no_metrics,
            notices=system.own_store().notices,
            of_itself=Told("0", {}, {}),
            clock=clock,
            ids=Ids(clock),
        )
    )
    async with GatewayServer(gateway, Address("127.0.0.1", port), limits, clock) as server:
        yield server


@contextlib.asynccontextmanager
async def served(store: Path | str, limits: GatewayLimits = LIMITS) -> AsyncIterator[str]:
    """The URL of a gateway with duties, in this process."""
    system = await open_system(Settings(store=str(store)))
    try:
        async with gateway_of(system, limits=limits) as server, system.engine.duty_runner():
            yield server.url
    finally:
        await system.close()


@contextlib.contextmanager
def served_by_a_thread(store: Path | str) -> Iterator[str]:
    """The same in a thread with a loop of its own, for code that blocks its own."""
    started: concurrent.futures.Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]]
    started = concurrent.futures.Future()

    async def serve() -> None:
        async with served(store) as url:
            stopping = asyncio.Event()
            started.set_result((url, asyncio.get_running_loop(), stopping))
            await stopping.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="gateway")
    thread.start()
    url, loop, stopping = started.result(30)
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(30)


class GatewayProcess:
    """A gateway process on one port: started, killed without warning, started again."""

    def __init__(self, store: Path | str, port: int = 0) -> None:
        self._store = store
        self._port = port
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        """Start it and wait until it listens."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__)),
            str(self._store),
            str(self._port),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            self.url = (await self._process.stdout.readline()).decode().strip()
        assert self.url, "the gateway did not start"
        self._port = int(self.url.rpartition(":")[2])

    async def kill(self, number: int = signal.SIGKILL) -> None:
        """End it; by default at once, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            await process.wait()

    async def __aenter__(self) -> "GatewayProcess":
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.kill()


async def _serve(store: str, port: int) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    system = await open_system(Settings(store=store))
    async with gateway_of(system, port) as server, system.engine.duty_runner():
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await stopping.wait()
    await system.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
