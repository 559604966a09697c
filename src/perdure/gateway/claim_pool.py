"""Claims that wait for work: a waiting worker costs a place in a line, no thread and no query.

Workers that may have the same tasks stand in one line. A hint of new work asks the store for the first of a line only;
when that one got all it wanted, for the next. So a thousand idle workers cost one claim a hint.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from perdure.domain.attempt import Lease
from perdure.domain.outcome import HandedBack
from perdure.engine.engine import Operations
from perdure.errors import PerdureError, Unavailable
from perdure.gateway.hints import Hints
from perdure.gateway.presence import Presence
from perdure.store.ledger import WorkerInfo, WorkerOrder
from perdure.store.wakeups import Topic

POLL_SECONDS = 2.0
"""How often the first of a line is asked for although nothing was hinted at."""
SPENT_MAX = 10_000
"""How many request ids are remembered whose leases were given back here."""
LINES_MAX = 10_000

_log = logging.getLogger("perdure.gateway")

Line = tuple[frozenset[str], ...] | str


class Wanted(NamedTuple):
    """One claim."""

    worker_id: str
    most: int
    """How many leases it takes."""
    request_id: str
    told: WorkerOrder | None = None
    """What the worker knows to be ordered: its claim waits no longer than it is true."""


class Claimed(NamedTuple):
    """What a claim got, and how long it had waited when the store was asked for it."""

    leases: list[Lease]
    waited_seconds: float = 0.0


class _Place:
    """A worker in its line. `leases` is done when it was served; the store was last asked for them at `asked`, or
    never since it stands here.
    """

    __slots__ = ("asked", "leases", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        loop = asyncio.get_running_loop()
        self.asked = loop.time()
        self.leases: asyncio.Future[list[Lease]] = loop.create_future()


class ClaimPool:
    """Serves the claims of remote workers. Belongs to one event loop."""

    def __init__(self, operations: Operations, hints: Hints, presence: Presence) -> None:
        self._operations = operations
        self._presence = presence
        self._hints = hints
        self._lines: dict[Line, deque[_Place]] = {}
        self._line_of: dict[str, Line] = {}
        self._spent: dict[str, int] = {}
        self._server: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to serve those who wait."""
        if self._server is None:
            self._server = asyncio.create_task(self._serve(), name="perdure-gateway-claims")

    async def stop(self) -> None:
        """Serve nobody any more; whoever waits is answered with nothing."""
        server, self._server = self._server, None
        if server is not None:
            server.cancel()
            await asyncio.wait([server])
        for line in self._lines.values():
            for place in line:
                if not place.leases.done():
                    place.leases.set_result([])
        self._lines.clear()

    def know(self, worker: WorkerInfo) -> None:
        """Which line a worker stands in."""
        while len(self._line_of) >= LINES_MAX:
            self._line_of.pop(next(iter(self._line_of)))
        self._line_of[worker.id] = (
            frozenset(worker.organizations),
            frozenset(worker.kinds),
            frozenset(worker.queues),
            frozenset(worker.capabilities),
        )

    def forget(self, worker_id: str) -> None:
        """The worker is gone."""
        self._line_of.pop(worker_id, None)

    async def claim(self, wanted: Wanted, wait: float, gone: Callable[[], Awaitable[None]]) -> Claimed:
        """At most `wanted.most` leases. When there are none, wait for some, at most `wait` seconds.

        `gone` returns when the client has gone away: then what was leased for it is given back at once.
        """
        began = asyncio.get_running_loop().time()
        asked = began
        self._presence.sign(wanted.worker_id)
        leases = [] if wait > 0 and self._is_dry(wanted) else await self._claim(wanted)
        watch = asyncio.ensure_future(gone())
        try:
            if not leases and wait > 0 and self._server is not None:
                leases, asked = await self._wait_in_line(wanted, wait, watch)
            else:
                await asyncio.sleep(0)
            if leases and watch.done():
                await self._give_back(wanted, leases)
                return Claimed([])
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await watch
        return Claimed(leases, asked - began)

    def _is_dry(self, wanted: Wanted) -> bool:
        """Whether there is nothing for a claim that is new: workers wait who may have the same, and may work."""
        line = self._lines.get(self._line_of.get(wanted.worker_id, wanted.worker_id))
        if wanted.told is not WorkerOrder.WORK or not line:
            return False
        return any(
            not place.leases.done() and self._presence.order_of(place.wanted.worker_id) is WorkerOrder.WORK
            for place in line
        )

    async def _wait_in_line(
        self, wanted: Wanted, wait: float, watch: "asyncio.Future[None]"
    ) -> tuple[list[Lease], float]:
        place = _Place(wanted)
        line = self._lines.setdefault(self._line_of.get(wanted.worker_id, wanted.worker_id), deque())
        line.append(place)
        try:
            with self._presence.waiting(wanted.worker_id, wanted.told) as news:
                either: set[asyncio.Future[Any]] = {place.leases, watch, news}
                await asyncio.wait(either, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not place.leases.cancel() and place.leases.result():
                await asyncio.shield(self._give_back(wanted, place.leases.result()))
            raise
        if place.leases.done():
            return place.leases.result(), place.asked
        # A claim for it that is under way finds the place left, and gives back what it got.
        place.leases.cancel()
        return [], place.asked

    async def _serve(self) -> None:
        seen = self._hints.seen
        while True:
            seen = await self._hints.next(seen, Topic.READY, POLL_SECONDS)
            for key in list(self._lines):
                try:
                    await self._serve_line(self._lines[key])
                except Unavailable:
                    # Those who wait do so to the end of their time; the next hint or poll tries again.
                    continue
                except PerdureError as error:
                    _log.error("a claim for those who wait failed: %s", error)
                except Exception:
                    # Without this the line would stand still for good, and nobody would be told.
                    _log.exception("a claim for those who wait failed; please report it")
                if not self._lines[key]:
                    del self._lines[key]

    async def _serve_line(self, line: deque[_Place]) -> None:
        while line:
            place = line.popleft()
            if place.leases.done():
                continue
            place.asked = asyncio.get_running_loop().time()
            try:
                leases = await self._claim(place.wanted)
            except BaseException:
                line.append(place)
                raise
            if place.leases.done():
                await self._give_back(place.wanted, leases)
            elif leases:
                place.leases.set_result(leases)
            else:
                line.append(place)
            if len(leases) < place.wanted.most:
                return

    async def _claim(self, wanted: Wanted) -> list[Lease]:
        times = self._spent.get(wanted.request_id)
        request_id = wanted.request_id if times is None else f"{wanted.request_id}.{times}"
        return await self._operations.claim(wanted.worker_id, wanted.most, request_id)

    async def _give_back(self, wanted: Wanted, leases: Sequence[Lease]) -> None:
        """Hand back what nobody will run. The same request again then gets attempts of its own."""
        if not leases:
            return
        while len(self._spent) >= SPENT_MAX:
            self._spent.pop(next(iter(self._spent)))
        self._spent[wanted.request_id] = self._spent.get(wanted.request_id, 0) + 1
        _log.info("worker %s went away while it waited: %d leases are given back", wanted.worker_id, len(leases))
        try:
            await self._operations.settle([(lease.hold, HandedBack()) for lease in leases])
        except Unavailable as error:
            _log.warning("leases could not be given back, they run out: %s", error)
