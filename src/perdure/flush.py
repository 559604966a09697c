"""The one coalescer: commands gather while a flush is under way, and the next flush takes what has gathered.

A lone command never waits: whoever flushes is woken at once, or its caller takes it back and flushes it itself. Under
load, flushes grow by themselves, because more gathers while one is under way. Nothing here knows what a flush does; a
store hands in `Operation`s and runs them.

Callers live on event loops of any thread. Each call has at most one future, on its caller's loop; a flush hands out its
answers with one wake-up per loop. A caller that is cancelled drops its future only: the flush that carries its command
goes on.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from perdure.errors import Misuse, StoreBusy

FLUSH_MAX_ITEMS = 20_000
"""One flush takes no more items than this, unless a single call has more."""
BACKLOG_MAX_ITEMS = 200_000
"""Calls are turned away while more items than this wait for a flush."""


class Flushable(Protocol):
    """What the coalescer needs to know of an operation."""

    @property
    def rank(self) -> int:
        """Its place in a flush: lower first."""

    @property
    def max_items(self) -> int:
        """The most items of it that one flush takes, unless a single call has more."""


class Call:
    """Items that one caller wants flushed, and the answer: `results` (one per item, in order) or `error`."""

    __slots__ = ("_future", "_loop", "error", "items", "operation", "resolved", "results")

    def __init__(
        self,
        operation: Any,
        items: Sequence[Any],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.operation = operation
        self.items = items
        self.results: list[Any] | None = None
        self.error: BaseException | None = None
        self.resolved = False
        """Whether the answer is final and has come to the caller's loop."""
        self._loop = loop
        self._future: asyncio.Future[list[Any]] | None = None

    @property
    def answered(self) -> bool:
        """Whether the flush has decided what becomes of this call."""
        return self.results is not None or self.error is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop of the caller; `None` for a call that nobody awaits."""
        return self._loop

    def future(self) -> asyncio.Future[list[Any]]:
        """What the caller awaits. Only on the caller's loop."""
        if self._loop is None:
            raise Misuse("this call was made without an event loop; read its results instead")
        if self._future is None:
            self._future = self._loop.create_future()
            if self.resolved:
                self._settle(self._future)
        return self._future

    def resolve(self) -> None:
        """Hand the answer to the caller. Only on the caller's loop."""
        self.resolved = True
        if self._future is not None:
            self._settle(self._future)

    def _settle(self, future: "asyncio.Future[list[Any]]") -> None:
        if future.done():
            return
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.results if self.results is not None else [])

    def answer(self) -> list[Any]:
        """The results. Raises the error that the flush decided on."""
        if self.error is not None:
            raise self.error
        return self.results if self.results is not None else []


class Backlog:
    """What waits for the next flush. Callers `add` from any thread; one flusher's thread waits and takes."""

    def __init__(self, flush_max_items: int = FLUSH_MAX_ITEMS, max_items: int = BACKLOG_MAX_ITEMS) -> None:
        self._flush_max_items = flush_max_items
        self._max_items = max_items
        self._calls: deque[Call] = deque()
        self._items = 0
        self._guard = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._idle = False
        self._closed = False
        self._ended = False

    def __len__(self) -> int:
        """How many items wait."""
        return self._items

    def add(self, operation: Flushable, items: Sequence[Any], ring: bool = True) -> asyncio.Future[list[Any]]:
        """As `put`; the answer is the future's."""
        return self.put(operation, items, ring).future()

    def put(self, operation: Flushable, items: Sequence[Any], ring: bool = True) -> Call:
        """Gather items for the next flush. Raises `StoreBusy` when too much waits, `Misuse` when closed.

        Without `ring` the flusher is not woken: `take_lone` or `nudge` has to follow.
        """
        call = Call(operation, items, asyncio.get_running_loop())
        with self._guard:
            if self._closed:
                raise _closed()
            if self._items >= self._max_items:
                raise StoreBusy(f"{self._items} items wait to be written already; try again later", retry_after=1.0)
            self._calls.append(call)
            self._items += len(items)
            ring = ring and self._idle
            if ring:
                self._idle = False
        if ring:
            self._bell.release()
        return call

    def wait(self, timeout: float | None) -> bool:
        """Block the flusher until something has gathered, `nudge` or `close` is called, or `timeout` seconds pass.

        True when something has gathered.
        """
        with self._guard:
            if self._calls or self._closed:
                return bool(self._calls)
            self._bell.acquire(blocking=False)
            self._idle = True
        self._bell.acquire(timeout=-1 if timeout is None else timeout)
        with self._guard:
            self._idle = False
            return bool(self._calls)

    def nudge(self) -> None:
        """Let a waiting flusher look around."""
        with self._guard:
            ring = self._idle
            self._idle = False
        if ring:
            self._bell.release()

    def take(self) -> list[Call]:
        """What the next flush carries: the oldest calls, as many as the bounds allow, at least one."""
        taken: list[Call] = []
        room = self._flush_max_items
        room_of: dict[int, int] = {}
        with self._guard:
            while self._calls:
                call = self._calls[0]
                size = len(call.items)
                key = id(call.operation)
                room_here = room_of.get(key)
                if room_here is None:
                    room_here = call.operation.max_items
                if taken and (size > room or size > room_here):
                    break
                self._calls.popleft()
                taken.append(call)
                self._items -= size
                room -= size
                room_of[key] = room_here - size
        return taken

    def take_lone(self, max_items: int, loop: asyncio.AbstractEventLoop, *, asleep: bool = True) -> Call | None:
        """The one call that waits, if there is no other, it is small and of this loop, and the flusher sleeps.

        Not `asleep`: whether it sleeps is not asked. It may be about to, or at work.
        """
        with self._guard:
            if len(self._calls) != 1 or self._items > max_items or self._closed or (asleep and not self._idle):
                return None
            if self._calls[0].loop is not loop:
                return None
            self._items = 0
            return self._calls.popleft()

    def put_back(self, call: Call) -> None:
        """Let a call that was taken be the first of the next flush, and wake the flusher.

        Raises `Misuse` when the flusher has ended meanwhile: nobody would take the call any more.
        """
        with self._guard:
            if self._ended:
                raise _closed()
            self._calls.appendleft(call)
            self._items += len(call.items)
        self.nudge()

    def close(self) -> None:
        """Refuse new calls. What has gathered can still be taken."""
        with self._guard:
            self._closed = True
        self.nudge()

    def end(self) -> bool:
        """Whether the flusher may end: it is closed, and nothing is left to take. From then on nothing is put back."""
        with self._guard:
            self._ended = self._closed and not self._calls
            return self._ended

    @property
    def closed(self) -> bool:
        """Whether new calls are refused."""
        return self._closed


def _closed() -> Misuse:
    return Misuse("the store is closed; open it again before using it")


def grouped(calls: Iterable[Call]) -> list[list[Call]]:
    """The calls by operation, in the order of the operations' ranks; within an operation, as they came."""
    groups: dict[int, list[Call]] = {}
    for call in calls:
        groups.setdefault(id(call.operation), []).append(call)
    return sorted(groups.values(), key=_rank)


def _rank(group: list[Call]) -> int:
    rank: int = group[0].operation.rank
    return rank


def merged(calls: Sequence[Call]) -> Sequence[Any]:
    """All items of some calls, in order."""
    if len(calls) == 1:
        return calls[0].items
    return [item for call in calls for item in call.items]


def share(calls: Sequence[Call], results: list[Any]) -> None:
    """Give each call its part of the merged results."""
    if len(calls) == 1:
        calls[0].results = results
        return
    start = 0
    for call in calls:
        end = start + len(call.items)
        call.results = results[start:end]
        start = end


def deliver(calls: Sequence[Call]) -> None:
    """Hand out the answers, with one wake-up for each loop. A loop that has closed meanwhile gets none."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Call]] = {}
    for call in calls:
        if call.loop is not None:
            by_loop.setdefault(call.loop, []).append(call)
    for loop, own in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, own)
        except RuntimeError:
            continue


def _resolve(calls: list[Call]) -> None:
    for call in calls:
        call.resolve()
