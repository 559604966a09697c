"""Submits gather while others are under way, and travel together: the store commits them together anyway.

A lone submit never waits. A caller that is cancelled drops its answer only; what it asked for goes on.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from perdure.errors import Misuse, PerdureError, Refused
from perdure.store.ledger import Submitted

SENDS_MAX = 2
"""How many requests are under way at once: one is being stored while the next is read."""
GATHER_MAX_ITEMS = 1_000
GATHER_MAX_BYTES = 1024 * 1024

Answer = Submitted | PerdureError
Send = Callable[[Sequence[bytes]], Awaitable[list[Answer]]]


class _Call(NamedTuple):
    items: Sequence[bytes]
    answers: "asyncio.Future[list[Answer]]"


class Gathering:
    """Belongs to one event loop."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: deque[_Call] = deque()
        self._senders: set[asyncio.Task[None]] = set()
        self._closed = False

    async def __call__(self, items: Sequence[bytes]) -> list[Answer]:
        """One answer per item, in order. Raises what the request raised."""
        if self._closed:
            raise Misuse("this client is closed")
        loop = asyncio.get_running_loop()
        call = _Call(items, loop.create_future())
        self._waiting.append(call)
        if len(self._senders) < SENDS_MAX:
            sender = loop.create_task(self._send_all(), name="perdure-submit")
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        return await call.answers

    async def close(self) -> None:
        """End what is under way; whoever waits is told."""
        self._closed = True
        for sender in list(self._senders):
            sender.cancel()
        if self._senders:
            await asyncio.wait(list(self._senders))
        self._fail(self._waiting, Misuse("it was closed while a submit was under way: it may have been stored"))
        self._waiting.clear()

    async def _send_all(self) -> None:
        while calls := self._take():
            try:
                await self._send_together(calls)
            except asyncio.CancelledError:
                self._fail(calls, Misuse("it was closed while a submit was under way: it may have been stored"))
                raise
            except Exception as error:
                self._fail(calls, error)

    async def _send_together(self, calls: Sequence[_Call]) -> None:
        try:
            answers = await self._send([item for call in calls for item in call.items])
        except Refused:
            if len(calls) == 1:
                raise
            # The request as a whole was refused, so nothing of it was stored: whoever is at fault shall fail alone.
            for call in calls:
                await self._send_alone(call)
            return
        rest = iter(answers)
        for call in calls:
            mine = [next(rest) for _ in call.items]
            if not call.answers.done():
                call.answers.set_result(mine)

    async def _send_alone(self, call: _Call) -> None:
        try:
            await self._send_together([call])
        except Exception as error:
            self._fail([call], error)

    def _take(self) -> list[_Call]:
        taken: list[_Call] = []
        items = size = 0
        while self._waiting:
            call = self._waiting[0]
            bytes_of_call = sum(map(len, call.items))
            if taken and (items + len(call.items) > GATHER_MAX_ITEMS or size + bytes_of_call > GATHER_MAX_BYTES):
                break
            taken.append(self._waiting.popleft())
            items, size = items + len(call.items), size + bytes_of_call
        return taken

    def _fail(self, calls: Sequence[_Call] | deque[_Call], error: Exception) -> None:
        for call in calls:
            if not call.answers.done():
                call.answers.set_exception(copy.copy(error) if isinstance(error, PerdureError) else error)
