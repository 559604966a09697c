"""A TCP proxy that does to replies what bad networks do: cuts them, delays them, slices them, sends them twice."""

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from urllib.parse import urlsplit


class Fault(Enum):
    """What happens to one reply."""

    NONE = "none"
    CUT_BEFORE = "cut before"
    """The connection is cut before the request reaches the server."""
    CUT_AFTER = "cut after"
    """The server has answered, its answer is thrown away and the connection is cut."""
    CUT_WITHIN = "cut within"
    """Half of the answer arrives."""
    DELAY = "delay"
    SLICE = "slice"
    """The answer arrives in small pieces."""
    REPEAT = "repeat"
    """The answer arrives twice."""
    SWALLOW = "swallow"
    """The server has answered, and its answer never arrives: the link carries one way only."""
    TRICKLE = "trickle"
    """The answer begins late and arrives at a few bytes a second: a very slow link."""


PAUSE_SECONDS = 0.05
SLICE_BYTES = 7
READ_BYTES = 256 * 1024
SWALLOWED_SECONDS = 120.0
"""After so long a connection whose answer was swallowed ends."""
TRICKLE_BEGINS_SECONDS = 0.8
TRICKLE_BYTES_PER_SECOND = 2_048
TRICKLE_BYTES = 128

Choose = Callable[[bytes], Fault]
"""Chooses by the first bytes of the request."""


class ChaosProxy:
    """`async with ChaosProxy(url, choose) as proxy:` listens at `proxy.url` until the block ends.

    It works by what arrives in one piece, which on loopback is a request or a reply of moderate size.
    """

    def __init__(self, url: str, choose: Choose = lambda request: Fault.NONE) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self.choose = choose
        self.done: dict[Fault, int] = dict.fromkeys(Fault, 0)
        """How often each fault was done."""
        self.url = ""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "ChaosProxy":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Cut every connection now."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._relay(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        self._writers.add(up_writer)
        try:
            while request := await reader.read(READ_BYTES):
                fault = self.choose(request)
                self.done[fault] += 1
                if fault is Fault.CUT_BEFORE:
                    return
                up_writer.write(request)
                if not await self._reply(fault, reader, up_reader, up_writer, writer):
                    return
        finally:
            up_writer.transport.abort()
            self._writers.discard(up_writer)

    async def _reply(
        self,
        fault: Fault,
        reader: asyncio.StreamReader,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Relay until the reply has come; false when the connection shall be cut."""
        more = asyncio.ensure_future(reader.read(READ_BYTES))
        reply = asyncio.ensure_future(up_reader.read(READ_BYTES))
        try:
            while not reply.done():
                await asyncio.wait((more, reply), return_when=asyncio.FIRST_COMPLETED)
                if more.done() and not reply.done():
                    if not more.result():
                        return False
                    up_writer.write(more.result())
                    more = asyncio.ensure_future(reader.read(READ_BYTES))
        finally:
            reply.cancel()
            if not more.done():
                more.cancel()
        data = reply.result()
        if more.done() and not more.cancelled() and more.result():
            up_writer.write(more.result())
        await asyncio.gather(more, return_exceptions=True)
        return bool(data) and await self._send(fault, data, writer)

    async def _send(self, fault: Fault, data: bytes, writer: asyncio.StreamWriter) -> bool:
        if fault is Fault.CUT_AFTER:
            return False
        if fault is Fault.CUT_WITHIN:
            writer.write(data[: len(data) // 2])
            await writer.drain()
            return False
        if fault is Fault.SWALLOW:
            await asyncio.sleep(SWALLOWED_SECONDS)
            return False
        if fault is Fault.TRICKLE:
            await asyncio.sleep(TRICKLE_BEGINS_SECONDS)
            for start in range(0, len(data), TRICKLE_BYTES):
                writer.write(data[start : start + TRICKLE_BYTES])
                await asyncio.sleep(TRICKLE_BYTES / TRICKLE_BYTES_PER_SECOND)
            return True
        if fault is Fault.DELAY:
            await asyncio.sleep(PAUSE_SECONDS)
        if fault is Fault.SLICE:
            for start in range(0, len(data), SLICE_BYTES):
                writer.write(data[start : start + SLICE_BYTES])
                await asyncio.sleep(0)
            return True
        writer.write(data * 2 if fault is Fault.REPEAT else data)
        await writer.drain()
        return True
