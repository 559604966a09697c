"""Claims that wait for work: a waiting worker costs a place in a line, no thread and no query.

Workers that may have the same tasks stand in one line. A hint of new work asks the store for the first of a line only;
when that one got all it wanted, for the next. So a thousand idle workers cost one claim a hint.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from perdure.domain.attempt import Lease
from perdure.domain.outcome import HandedBack
from perdure.engine.engine import Operations
from perdure.errors import PerdureError, Unavailable
from perdure.gateway.claim_line import Around, Line, Place, StandingClaim, Wanted
from perdure.gateway.claim_repeats import Repeats
from perdure.gateway.presence import Presence
from perdure.store.ledger import WorkerInfo, WorkerOrder
from perdure.store.wakeups import Subscription, Topic

POLL_SECONDS = 2.0
"""How often the first of a line is asked for although nothing was hinted at."""
REST_SECONDS = 0.002
"""Between two rounds of asking: a stream of hints is followed once for many."""
STAND_BY_MAX = 16
"""A claim that stands by takes no more: a commit of the loop brings few tasks."""
SPENT_MAX = 10_000
"""How many request ids are remembered whose leases were given back here."""
LINES_MAX = 10_000

_log = logging.getLogger("perdure.gateway")

LineKey = tuple[frozenset[str], ...] | str
"""What the workers of one line may have; a worker's id as long as that is not known."""


class Claimed(NamedTuple):
    """What a claim got, and how long it had waited when the store was asked for it."""

    leases: list[Lease]
    waited_seconds: float = 0.0


class ClaimPool:
    """Serves the claims of remote workers. Belongs to one event loop."""

    def __init__(self, operations: Operations, presence: Presence) -> None:
        self._operations = operations
        self._presence = presence
        self._lines: dict[LineKey, Line] = {}
        self._line_of: dict[str, LineKey] = {}
        self._spent: dict[str, int] = {}
        self._repeats = Repeats()
        self._server: asyncio.Task[None] | None = None
        self._subscription: Subscription | None = None
        self._giving_back: set[asyncio.Task[None]] = set()
        self._around = Around(self._stand_by, self._may_work, self._told_alone, self._served, self._spare)
        self.answering = False
        """Whether a claim that stood by was served in this turn of the loop, and is about to be answered."""

    def start(self) -> None:
        """Begin to serve those who wait."""
        if self._server is None:
            self._subscription = self._operations.subscribe()
            serving = self._serve(self._subscription)
            self._server = asyncio.create_task(serving, name="perdure-gateway-claims")

    async def stop(self) -> None:
        """Serve nobody any more; whoever waits is answered with nothing."""
        server, self._server = self._server, None
        if server is not None:
            server.cancel()
            await asyncio.wait([server, *self._giving_back])
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        for line in self._lines.values():
            line.hold()
            for place in line.places:
                place.end()
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

        `gone` returns when the client has gone away: then what was leased for it is given back at once, unless the
        same request is here once more, or was answered with leases.
        """
        self._repeats.enter(wanted)
        try:
            claimed = await self._get(wanted, wait, gone)
            if claimed.leases:
                self._repeats.answer(wanted)
            return claimed
        finally:
            await self._leave(wanted)

    async def _get(self, wanted: Wanted, wait: float, gone: Callable[[], Awaitable[None]]) -> Claimed:
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
            if not leases and not watch.done() and self._repeats.undelivered(wanted):
                asked = asyncio.get_running_loop().time()
                leases = await self._claim(wanted)
            if leases and watch.done():
                self._keep(wanted, leases)
                return Claimed([])
        finally:
            # Its end is not waited for: whoever was served shall begin.
            watch.add_done_callback(_look_away)
            watch.cancel()
        return Claimed(leases, asked - began)

    def _is_dry(self, wanted: Wanted) -> bool:
        """Whether there is nothing for a claim that is new: workers wait who may have the same, and may work."""
        line = self._lines.get(self._line_of.get(wanted.worker_id, wanted.worker_id))
        if wanted.told is not WorkerOrder.WORK or not line or self._repeats.undelivered(wanted):
            return False
        return any(place.waits and self._may_work(place.wanted.worker_id) for place in line.places)

    async def _wait_in_line(
        self, wanted: Wanted, wait: float, watch: "asyncio.Future[None]"
    ) -> tuple[list[Lease], float]:
        key = self._line_of.get(wanted.worker_id, wanted.worker_id)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(self._around)
        place = line.join(wanted)
        timer = asyncio.get_running_loop().call_later(wait, place.end)
        watch.add_done_callback(place.end)
        try:
            with self._presence.waiting(wanted.worker_id, wanted.told) as news:
                news.add_done_callback(place.end)
                return await place.leases, place.asked
        except asyncio.CancelledError:
            if not place.leases.cancel() and not place.leases.cancelled():
                self._keep(wanted, place.leases.result())
            raise
        finally:
            self.answering = False
            timer.cancel()
            place.end()

    async def _serve(self, subscription: Subscription) -> None:
        while True:
            await _hinted(subscription)
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
            await asyncio.sleep(REST_SECONDS)

    async def _serve_line(self, line: Line) -> None:
        line.hold()
        try:
            while line:
                place = line.places.popleft()
                if place.waits and await self._serve_place(place, line) < place.wanted.most:
                    return
        finally:
            line.let_go()

    async def _serve_place(self, place: Place, line: Line) -> int:
        """Claim for a place, and return how many leases there were. Without any, it waits on behind the others."""
        place.asked = asyncio.get_running_loop().time()
        self._repeats.enter(place.wanted)
        try:
            leases = await self._claim(place.wanted)
            if not place.waits:
                self._keep(place.wanted, leases)
            elif leases:
                place.leases.set_result(leases)
            else:
                line.places.append(place)
            return len(leases)
        except BaseException:
            line.places.append(place)
            raise
        finally:
            await self._leave(place.wanted)

    # What lines ask for

    def _stand_by(self, wanted: Wanted, standing: StandingClaim) -> Callable[[], None]:
        most = min(wanted.most, STAND_BY_MAX)
        return self._operations.stand_by(wanted.worker_id, most, standing, self._request_id(wanted))

    def _may_work(self, worker_id: str) -> bool:
        return self._presence.order_of(worker_id) is WorkerOrder.WORK

    def _told_alone(self) -> Subscription | None:
        return self._subscription if len(self._lines) == 1 else None

    def _served(self) -> None:
        self.answering = True

    def _spare(self, wanted: Wanted, leases: list[Lease]) -> None:
        self._repeats.enter(wanted)
        self._keep(wanted, leases)
        self._give_back(wanted, self._repeats.leave(wanted))

    async def _claim(self, wanted: Wanted) -> list[Lease]:
        return await self._operations.claim(wanted.worker_id, wanted.most, self._request_id(wanted))

    def _request_id(self, wanted: Wanted) -> str:
        times = self._spent.get(wanted.request_id)
        return wanted.request_id if times is None else f"{wanted.request_id}.{times}"

    # What cannot be delivered

    def _keep(self, wanted: Wanted, leases: Sequence[Lease]) -> None:
        """Have another claim of the same request fetch these; without one they are given back."""
        if not leases:
            return
        self._repeats.keep(wanted, leases)
        line = self._lines.get(self._line_of.get(wanted.worker_id, wanted.worker_id))
        for place in list(line.places) if line else ():
            if place.wanted.request == wanted.request:
                place.end()

    async def _leave(self, wanted: Wanted) -> None:
        giving = self._give_back(wanted, self._repeats.leave(wanted))
        if giving is not None:
            await asyncio.shield(giving)

    def _give_back(self, wanted: Wanted, leases: Sequence[Lease]) -> "asyncio.Task[None] | None":
        """Hand back what nobody will run. From now on the same request gets attempts of its own."""
        if not leases:
            return None
        times = self._spent.pop(wanted.request_id, 0)
        while len(self._spent) >= SPENT_MAX:
            self._spent.pop(next(iter(self._spent)))
        self._spent[wanted.request_id] = times + 1
        _log.info("worker %s went away while it waited: %d leases are given back", wanted.worker_id, len(leases))
        giving = asyncio.create_task(self._hand_back(leases), name="perdure-gateway-give-back")
        self._giving_back.add(giving)
        giving.add_done_callback(self._giving_back.discard)
        return giving

    async def _hand_back(self, leases: Sequence[Lease]) -> None:
        try:
            await self._operations.settle([(lease.hold, HandedBack()) for lease in leases])
        except Unavailable as error:
            _log.warning("leases could not be given back, they run out: %s", error)


async def _hinted(subscription: Subscription) -> None:
    """Return when there may be work, or when it is time to look."""
    clock = asyncio.get_running_loop()
    until = clock.time() + POLL_SECONDS
    while (left := until - clock.time()) > 0:
        if await subscription.wait(left) & Topic.READY:
            return


def _look_away(watch: "asyncio.Future[None]") -> None:
    """However the watch over a client ended, nobody wants to know any more."""
    if not watch.cancelled():
        watch.exception()
