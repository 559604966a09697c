"""Hints over HTTP: a request that the gateway answers when there may be a cancel or an order."""

import asyncio

from perdure import wire
from perdure.client.transport import Lane, Repeat, Request, Transport
from perdure.store.wakeups import Topic
from perdure.wire.shapes import WAIT_MAX_SECONDS

REST_SECONDS = 0.01
"""The shortest time between two questions: under a stream of hints the next one tells of all that came meanwhile."""

_TOPICS = {"ready": Topic.READY, "control": Topic.CONTROL}


class RemoteHints:
    """Waits for hints of control; of new work a waiting claim tells, so that a thousand idle workers are not woken for
    one task. What happened between two waits is told by the next, which continues after the cursor of the last.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cursor: str | None = None
        self._asked = 0.0
        self._closed = False

    async def wait(self, timeout: float) -> Topic:
        """The topics hinted at since the last call; an empty flag after `timeout` seconds without any.

        Raises one of `Unavailable` when the gateway is away; after that the first answer is a hint of everything.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        if self._cursor is None:
            self._cursor = (await self._ask(None, 0.0)).cursor
            return Topic.READY | Topic.CONTROL
        while not self._closed and (left := until - loop.time()) > 0:
            await asyncio.sleep(max(0.0, self._asked + REST_SECONDS - loop.time()))
            self._asked = loop.time()
            try:
                answer = await self._ask(self._cursor, min(left, WAIT_MAX_SECONDS))
            except BaseException:
                self._cursor = None
                raise
            self._cursor = answer.cursor
            if answer.topics:
                topics = Topic(0)
                for each in answer.topics:
                    topics |= _TOPICS[each]
                return topics
        return Topic(0)

    def close(self) -> None:
        """Wait no more."""
        self._closed = True

    async def _ask(self, after: str | None, wait: float) -> wire.Hinted:
        query = {"topic": "control", "wait": f"{wait:.3f}"}
        if after is not None:
            query["after"] = after
        request = Request("GET", "/v1/worker/hints", query=query, wait=wait, lane=Lane.POLLS, repeat=Repeat.NEVER)
        answer: wire.Hinted = await self._transport.ask(request, wire.Hinted)
        return answer
