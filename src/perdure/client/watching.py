"""Wait for tasks to end, over HTTP: few requests ask for all who wait."""

import asyncio
from collections.abc import Sequence

import msgspec

from perdure import wire
from perdure.client.transport import Lane, Repeat, Request, Transport
from perdure.domain import ids, limits
from perdure.engine.quantities import check_timeout
from perdure.errors import Misuse, NotFound, PerdureError, Unavailable, WaitTimedOut
from perdure.store.views import Ended
from perdure.wire.shapes import WAIT_MAX_SECONDS
from perdure.wire.telling import read_ended

POLLS_MAX = 4
"""How many requests wait at once."""
ASK_MAX_IDS = 1_000
REST_SECONDS = 0.005
REST_PER_ID_SECONDS = 0.0001
REST_MAX_SECONDS = 0.25
AWAY_FIRST_SECONDS = 0.1
AWAY_MAX_SECONDS = 2.0
SHOWN_IDS = 3


class _Waiter:
    """One caller: what it still waits for, what has ended, and the future that it awaits."""

    __slots__ = ("any_of", "done", "ended", "open")

    def __init__(self, open_ids: set[str], any_of: bool, done: "asyncio.Future[None]") -> None:
        self.open = open_ids
        self.ended: dict[str, Ended] = {}
        self.any_of = any_of
        self.done = done

    def note(self, each: Ended) -> None:
        """A task has ended."""
        self.open.discard(each.id)
        self.ended[each.id] = each
        if not self.done.done() and (self.any_of or not self.open):
            self.done.set_result(None)


class Watch:
    """Waits for the ends of tasks; belongs to one event loop.

    Whoever begins to wait is asked for at once, by a request of its own as long as there are few of them; then the
    oldest one is given up and asked anew together with all that came.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiters: set[_Waiter] = set()
        self._polls: dict[asyncio.Task[None], frozenset[str]] = {}
        self._planned: asyncio.Handle | None = None
        self._rest = AWAY_FIRST_SECONDS
        self._closed = False

    async def __call__(self, task_ids: Sequence[str], timeout: float | None, any_of: bool = False) -> list[Ended]:
        """How the tasks ended, in the order asked; with `any_of` those that have, as soon as one has.

        `timeout` is seconds; `None` waits for ever. Raises `WaitTimedOut`, `NotFound` for an unknown task, `Malformed`.
        """
        wanted = list(dict.fromkeys(ids.parse_all(task_ids)))
        check_timeout(timeout)
        if not wanted:
            return []
        waiter = _Waiter(set(wanted), any_of, asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        try:
            if timeout == 0:
                await self._look(waiter)
            else:
                self._plan(0.0)
            async with asyncio.timeout(timeout):
                await waiter.done
        except TimeoutError:
            if not waiter.done.done() or waiter.done.cancelled():
                raise _timed_out(waiter, timeout or 0.0) from None
        finally:
            self._waiters.discard(waiter)
            if not self._waiters:
                self._stop()
        return [waiter.ended[each] for each in wanted if each in waiter.ended]

    async def ended(self, task_ids: Sequence[str]) -> list[Ended]:
        """Those of the tasks that have ended; unknown ones have not."""
        found: list[Ended] = []
        for start in range(0, len(task_ids), ASK_MAX_IDS):
            left = list(task_ids[start : start + ASK_MAX_IDS])
            while left:
                try:
                    found += await self._ask(left, 0.0, Lane.CALLS, Repeat.ALWAYS)
                except NotFound as error:
                    unknown = error.fields.get("id")
                    if unknown not in left:
                        raise
                    left.remove(unknown)
                else:
                    break
        return found

    async def close(self) -> None:
        """End all requests; whoever still waits is told."""
        self._closed = True
        for waiter in self._waiters:
            if not waiter.done.done():
                waiter.done.set_exception(Misuse("it was closed while somebody waited for tasks to end"))
        polls = list(self._polls)
        self._stop()
        if polls:
            await asyncio.wait(polls)

    def _plan(self, seconds: float) -> None:
        """Look for what is not asked for yet, soon: who begins to wait in the same turn is asked for together."""
        if self._planned is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._planned = loop.call_later(seconds, self._begin) if seconds else loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._planned = None
        uncovered = self._open() - frozenset().union(*self._polls.values())
        if not uncovered:
            return
        if len(self._polls) >= POLLS_MAX:
            oldest = next(iter(self._polls))
            uncovered |= self._polls.pop(oldest) & self._open()
            oldest.cancel()
        some = frozenset(list(uncovered)[:ASK_MAX_IDS])
        poll = asyncio.get_running_loop().create_task(self._poll(some), name="perdure-wait-ended")
        self._polls[poll] = some
        poll.add_done_callback(self._polled)
        if len(uncovered) > len(some):
            self._plan(REST_SECONDS)

    def _polled(self, poll: "asyncio.Task[None]") -> None:
        covered = self._polls.pop(poll, frozenset())
        if not poll.cancelled() and (error := poll.exception()) is not None:
            self._fail(covered, error)
        if self._waiters:
            self._plan(min(REST_MAX_SECONDS, REST_SECONDS + REST_PER_ID_SECONDS * len(covered)))

    async def _poll(self, some: frozenset[str]) -> None:
        try:
            self._note(await self._ask(list(some), WAIT_MAX_SECONDS, Lane.POLLS, Repeat.NEVER))
            self._rest = AWAY_FIRST_SECONDS
        except NotFound as error:
            self._fail(some & {str(error.fields.get("id"))} or some, error)
        except Unavailable:
            # Whoever waits does so by its own timeout; the gateway is asked again.
            self._rest = min(self._rest * 2, AWAY_MAX_SECONDS)
            await asyncio.sleep(self._rest)

    async def _look(self, waiter: _Waiter) -> None:
        some = list(waiter.open)
        for start in range(0, len(some), ASK_MAX_IDS):
            self._note(await self._ask(some[start : start + ASK_MAX_IDS], 0.0, Lane.CALLS, Repeat.ALWAYS))

    async def _ask(self, task_ids: list[str], wait: float, lane: Lane, repeat: Repeat) -> list[Ended]:
        body = msgspec.json.encode(wire.WaitTasks(ids=task_ids[: limits.SUBMIT_MAX_TASKS], wait=wait, any=True))
        request = Request("POST", "/v1/tasks/wait", body, wait=wait, lane=lane, repeat=repeat)
        answer: wire.EndedTasks = await self._transport.ask(request, wire.EndedTasks)
        return [read_ended(each) for each in answer.tasks]

    def _note(self, ended: Sequence[Ended]) -> None:
        for each in ended:
            for waiter in self._waiters:
                if each.id in waiter.open:
                    waiter.note(each)

    def _fail(self, some: frozenset[str], error: BaseException) -> None:
        for waiter in self._waiters:
            if waiter.open & some and not waiter.done.done():
                waiter.done.set_exception(error if isinstance(error, PerdureError) else _defect(error))

    def _open(self) -> frozenset[str]:
        return frozenset().union(*(waiter.open for waiter in self._waiters if not waiter.done.done()))

    def _stop(self) -> None:
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        for poll in list(self._polls):
            poll.cancel()
        self._polls.clear()


def _defect(error: BaseException) -> PerdureError:
    return PerdureError(f"waiting for tasks to end failed; please report it: {error!r}")


def _timed_out(waiter: _Waiter, timeout: float) -> WaitTimedOut:
    left = sorted(waiter.open)
    shown = ", ".join(left[:SHOWN_IDS]) + (f" and {len(left) - SHOWN_IDS} more" if len(left) > SHOWN_IDS else "")
    return WaitTimedOut(
        f"{len(left)} of {len(left) + len(waiter.ended)} tasks had not ended after {round(timeout, 3):g} s: {shown}",
        task_ids=left,
        timeout=timeout,
    )
