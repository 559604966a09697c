"""A gateway on a real socket, in the test's own event loop or in a process of its own."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from migrated import lay
from perdure.app.app import App
from perdure.gateway.access import Address
from perdure.gateway.limits import GatewayLimits
from perdure.serving import Serving

PATIENCE = 30
TESTS = Path(__file__).parent.parent


@contextlib.asynccontextmanager
async def serving(folder: Path, role: Any = "gateway", **limits: Any) -> AsyncIterator[Serving]:
    app = App(lay(folder / "perdure.db"))
    served = Serving(app, role, Address("127.0.0.1", 0), gateway_limits=GatewayLimits(**limits))
    running = asyncio.create_task(served.run())
    began = asyncio.create_task(served.listening.wait())
    await asyncio.wait({running, began}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
    try:
        assert began.done(), running
        yield served
    finally:
        served.stop()
        await asyncio.wait_for(running, PATIENCE)
        await app.close()


@contextlib.contextmanager
def served_process(folder: Path, role: str = "gateway") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, URL) of `perdure serve`."""
    command = [sys.executable, "-m", "perdure", "serve", "--role", role, "--listen", "127.0.0.1:0", "--grace", "1"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "PERDURE_STORE": str(folder / "perdure.db")},
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "listens at" in line)
        yield process, line.split("listens at ")[1].strip()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def port_of(served: Serving) -> int:
    assert served.url is not None
    return int(served.url.rpartition(":")[2])


async def exchange(port: int, data: bytes) -> bytes:
    """Send bytes and read until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return answer
