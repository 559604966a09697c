"""The connections of one purpose to one gateway: kept alive, bounded in number, handed out in the order of asking."""

import asyncio
import ssl
from collections import deque
from typing import NamedTuple

from perdure.client.connection import Answer, Connection, Unreachable

CONNECT_SECONDS = 5.0
TURN_SECONDS = 15.0
"""How long to wait for a connection while all are in use."""
IDLE_SECONDS = 30.0
"""How long an unused connection is kept."""
EYEBALLS_SECONDS = 0.25


class Place(NamedTuple):
    """Where to connect. `trust` is `None` without TLS."""

    host: str
    port: int
    trust: ssl.SSLContext | None


class Pool:
    """Connections to one place. Belongs to one event loop."""

    def __init__(self, place: Place, most: int) -> None:
        self._place = place
        self._most = most
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._opening = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def ask(self, data: bytes, silence: float, whole: float) -> Answer:
        """Send a request on a free connection. Raises `Unreachable` or `NoAnswer`."""
        connection = self._take_idle()
        if connection is None:
            connection = await self._take()
        self._used.add(connection)
        try:
            return await connection.ask(data, silence, whole)
        finally:
            self._used.discard(connection)
            if not connection.closed and not self._closed:
                self._idle.append(connection)
            self._wake()

    async def close(self) -> None:
        """Close all of them."""
        self._closed = True
        for connection in (*self._idle, *self._used):
            connection.close()
        self._idle.clear()
        # One turn, in which the loop lets go of the sockets.
        await asyncio.sleep(0)

    def _take_idle(self) -> Connection | None:
        """The connection that was used last, unless it is closed or old."""
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and connection.idle_since >= oldest:
                return connection
            connection.close()
        return None

    async def _take(self) -> Connection:
        until = asyncio.get_running_loop().time() + TURN_SECONDS
        while len(self._used) + self._opening >= self._most:
            await self._turn(until)
            connection = self._take_idle()
            if connection is not None:
                return connection
        if self._closed:
            raise Unreachable("the client is closed")
        self._opening += 1
        try:
            return await self._open()
        finally:
            self._opening -= 1

    async def _turn(self, until: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(until):
                await waiter
        except TimeoutError:
            raise Unreachable(f"all {self._most} connections were in use for {TURN_SECONDS:g} s") from None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _open(self) -> Connection:
        place = self._place
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await loop.create_connection(
                    Connection,
                    place.host,
                    place.port,
                    ssl=place.trust,
                    happy_eyeballs_delay=EYEBALLS_SECONDS,
                )
        except TimeoutError:
            self._wake()
            raise Unreachable(f"no connection within {CONNECT_SECONDS:g} s") from None
        except (OSError, UnicodeError) as error:
            self._wake()
            raise Unreachable(str(error) or type(error).__name__) from error
        return connection
