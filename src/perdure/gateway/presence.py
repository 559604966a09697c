"""Which workers are there: a claim that waits here is its worker's sign of life, and hears of the worker's orders.

Signs of many workers are written together, and each worker's only as often as the store needs. What operators order is
looked up for all who wait at once, and ends the waits of those whom it concerns, so that one order or cancel does not
wake a thousand idle workers.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from perdure.errors import Unavailable
from perdure.gateway.hints import Hints, Seen
from perdure.store.ledger import WorkerOrder
from perdure.store.wakeups import Topic

SIGNS_IN_ACTIVE = 4
"""So many times within the time that a worker counts as alive, its sign is written."""
EVERY_SECONDS_MAX = 30.0
ROUNDS_IN_EVERY = 6
"""So often between two signs of one worker it is looked who is due: what is due then travels together."""
ORDERS_REST_SECONDS = 0.1
"""Between two looks for orders: a stream of hints is looked up once for many."""
ASKED_MAX = 10_000
KNOWN_MAX = 100_000
NEVER = float("-inf")

_log = logging.getLogger("perdure.gateway")


class Registry(Protocol):
    """Notes workers as there, and knows their orders; one answer per id, in order."""

    async def workers_seen(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """Note that workers are there."""

    async def worker_orders(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """What workers are ordered."""


class _Wait:
    """One claim that waits: `news` is done when its worker is ordered something else than it was `told`."""

    __slots__ = ("news", "told")

    def __init__(self, told: WorkerOrder | None) -> None:
        self.told = told
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Presence:
    """The signs and orders of the workers that claim here. Belongs to one event loop. `noted` hears of each round that
    went well.
    """

    def __init__(
        self, registry: Registry, hints: Hints, worker_active: float, noted: Callable[[], None] = lambda: None
    ) -> None:
        self._registry = registry
        self._hints = hints
        self._noted = noted
        self._every = min(EVERY_SECONDS_MAX, worker_active / SIGNS_IN_ACTIVE)
        self._waits: defaultdict[str, list[_Wait]] = defaultdict(list)
        self._signs: set[str] = set()
        self._written: dict[str, float] = {}
        self._orders: dict[str, WorkerOrder] = {}
        self._noting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write signs and to look for orders. Harmless when it does already."""
        if self._noting is None:
            self._noting = asyncio.create_task(self._note_again_and_again(), name="perdure-gateway-presence")

    async def stop(self) -> None:
        """Write nothing any more."""
        noting, self._noting = self._noting, None
        if noting is not None:
            noting.cancel()
            await asyncio.wait([noting])

    def know(self, worker_id: str, order: WorkerOrder) -> None:
        """The worker itself was noted as there in the store, just now, and told this order."""
        self._written[worker_id] = asyncio.get_running_loop().time()
        self._tell(worker_id, order)

    def forget(self, worker_id: str) -> None:
        """The worker is gone."""
        self._signs.discard(worker_id)
        self._written.pop(worker_id, None)
        self._orders.pop(worker_id, None)

    def sign(self, worker_id: str) -> None:
        """The worker gave a sign of life."""
        self._signs.add(worker_id)

    def order_of(self, worker_id: str) -> WorkerOrder | None:
        """What the worker is ordered, as far as it is known here."""
        return self._orders.get(worker_id)

    @contextlib.contextmanager
    def waiting(self, worker_id: str, told: WorkerOrder | None) -> Iterator["asyncio.Future[None]"]:
        """A claim of the worker waits for the time of the block. The future is done when the worker is ordered
        something else than it was told; never, where what it was told is `None`.
        """
        wait = _Wait(told)
        waits = self._waits[worker_id]
        waits.append(wait)
        _answer(wait, self._orders.get(worker_id))
        try:
            yield wait.news
        finally:
            wait.news.cancel()
            waits.remove(wait)
            if not waits:
                del self._waits[worker_id]

    async def note(self) -> None:
        """Write the signs that are due, and look up the orders of all others who wait."""
        now = asyncio.get_running_loop().time()
        here = self._signs | self._waits.keys()
        due = {each for each in here if now - self._written.get(each, NEVER) >= self._every}
        self._signs.clear()
        for some in _pieces(list(due)):
            orders = await self._registry.workers_seen(some)
            self._written.update(dict.fromkeys(some, now))
            self._tell_all(some, orders)
        await self.look(self._waits.keys() - due)

    async def look(self, worker_ids: Collection[str]) -> None:
        """Look up what workers are ordered."""
        for some in _pieces(list(worker_ids)):
            self._tell_all(some, await self._registry.worker_orders(some))

    async def _note_again_and_again(self) -> None:
        clock = asyncio.get_running_loop()
        every = self._every / ROUNDS_IN_EVERY
        seen, note_at = self._hints.seen, clock.time()
        while True:
            before, seen = seen, await self._hints.next(seen, Topic.CONTROL, max(0.0, note_at - clock.time()))
            try:
                if seen.control > before.control:
                    await self.look(self._alive())
                    await asyncio.sleep(ORDERS_REST_SECONDS)
                if clock.time() >= note_at:
                    note_at = clock.time() + every
                    await self.note()
                    self._trim()
                self._noted()
            except Unavailable:
                # Asked again in the next round; workers that would seem gone meanwhile are not, once it is back.
                seen = Seen(seen.ready, before.control)
                await asyncio.sleep(every)
            except Exception:
                # Without this, one defect would make all workers seem gone. It is not hidden: while no round goes well,
                # the gateway is not ready.
                _log.exception("noting which workers are there failed; please report it")
                await asyncio.sleep(every)

    def _alive(self) -> set[str]:
        """Who waits, and who did not long ago: it may be about to again."""
        since = asyncio.get_running_loop().time() - 2 * self._every
        return {each for each, at in self._written.items() if at >= since} | self._signs | self._waits.keys()

    def _trim(self) -> None:
        """Forget who claims here no more."""
        if len(self._written) > KNOWN_MAX:
            kept = self._waits.keys()
            self._written = {each: at for each, at in self._written.items() if each in kept}
            self._orders = {each: order for each, order in self._orders.items() if each in kept}

    def _tell_all(self, worker_ids: Iterable[str], orders: Iterable[WorkerOrder]) -> None:
        for worker_id, order in zip(worker_ids, orders, strict=True):
            self._tell(worker_id, order)

    def _tell(self, worker_id: str, order: WorkerOrder) -> None:
        self._orders[worker_id] = order
        for wait in self._waits.get(worker_id, ()):
            _answer(wait, order)


def _answer(wait: _Wait, order: WorkerOrder | None) -> None:
    if wait.told is not None and order is not None and order is not wait.told and not wait.news.done():
        wait.news.set_result(None)


def _pieces(worker_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(worker_ids), ASKED_MAX):
        yield worker_ids[start : start + ASKED_MAX]
