"""Wait for tasks to end: one watcher asks for all who wait."""

import asyncio
from collections.abc import Callable, Sequence

from perdure.domain import ids
from perdure.engine.quantities import check_timeout
from perdure.errors import Misuse, NotFound, Unavailable, WaitTimedOut
from perdure.store.views import Ended, Views
from perdure.store.wakeups import Subscription, Topic

POLL_SECONDS = 3.0
"""How often the watcher asks without any hint: hints may be lost."""
ASK_MAX_IDS = 1_000
VERIFY_MAX_IDS = 100
"""For how many unknown ids at a time it is checked that there are such tasks."""
VERIFY_SECONDS = 30.0
"""How often it is looked whether what is waited for is still there: a task can be removed before its end was seen."""
REST_FACTOR = 2.0
REST_MAX_SECONDS = 0.25
SHOWN_IDS = 3


class _Waiter:
    """One caller: what it still waits for, what has ended, and the future that it awaits."""

    __slots__ = ("any_of", "done", "ended", "open", "unverified")

    def __init__(self, open_ids: set[str], any_of: bool, done: "asyncio.Future[None]") -> None:
        self.open = open_ids
        self.unverified = set(open_ids)
        self.ended: dict[str, Ended] = {}
        self.any_of = any_of
        self.done = done

    def note(self, each: Ended) -> None:
        """A task has ended."""
        self.open.discard(each.id)
        self.unverified.discard(each.id)
        self.ended[each.id] = each

    @property
    def satisfied(self) -> bool:
        """Whether the caller has what it waits for."""
        return not self.open or (self.any_of and bool(self.ended))


class WaitEnded:
    """Waits for the ends of tasks. Belongs to one event loop."""

    def __init__(self, views: Views, subscribe: Callable[[Topic], Subscription]) -> None:
        self._views = views
        self._subscribe = subscribe
        self._waiters: dict[str, set[_Waiter]] = {}
        self._subscription: Subscription | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def __call__(
        self,
        organization: str,
        task_ids: Sequence[str],
        timeout: float | None,
        any_of: bool = False,
        *,
        known: bool = False,
    ) -> list[Ended]:
        """How the tasks ended, in the order asked; with `any_of` those that have, as soon as one has.

        `timeout` is seconds; `None` waits for ever. `known`: the caller has seen that there are such tasks. Raises
        `WaitTimedOut`, `NotFound` for an unknown task and for one that was removed meanwhile, `Malformed`.
        """
        wanted = list(dict.fromkeys(ids.parse_all(task_ids)))
        check_timeout(timeout)
        if not wanted:
            return []
        waiter = _Waiter(set(wanted), any_of, asyncio.get_running_loop().create_future())
        if known:
            waiter.unverified.clear()
        self._join(organization, waiter)
        try:
            await self._ask(organization, [waiter])
            if not waiter.satisfied:
                await self._verify(organization, [waiter])
                self._begin_to_watch()
                async with asyncio.timeout(timeout):
                    await waiter.done
        except TimeoutError:
            if not waiter.satisfied:
                raise _timed_out(waiter, timeout) from None
        finally:
            self._leave(organization, waiter)
        return [waiter.ended[each] for each in wanted if each in waiter.ended]

    async def close(self) -> None:
        """End the watcher; whoever still waits is told."""
        self._fail_all(Misuse("it was closed while somebody waited for tasks to end"))
        watcher = self._watcher
        self._stop_watching()
        if watcher is not None:
            await asyncio.wait([watcher])

    def _join(self, organization: str, waiter: _Waiter) -> None:
        """Be told of every end from now on. To be called before asking, so that no end falls between."""
        self._waiters.setdefault(organization, set()).add(waiter)
        if self._subscription is None:
            self._subscription = self._subscribe(Topic.ENDED)

    def _leave(self, organization: str, waiter: _Waiter) -> None:
        waiters = self._waiters.get(organization, set())
        waiters.discard(waiter)
        if not waiters:
            self._waiters.pop(organization, None)
        if not self._waiters:
            self._stop_watching()

    def _begin_to_watch(self) -> None:
        if self._subscription is not None and (self._watcher is None or self._watcher.done()):
            self._watcher = asyncio.create_task(self._watch(self._subscription), name="perdure-wait-ended")

    def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    async def _watch(self, subscription: Subscription) -> None:
        clock = asyncio.get_running_loop()
        verified = clock.time()
        try:
            while True:
                await subscription.wait(POLL_SECONDS)
                started = clock.time()
                if started - verified >= VERIFY_SECONDS:
                    verified = started
                    self._doubt_all()
                try:
                    for organization in list(self._waiters):
                        await self._look(organization)
                except Unavailable:
                    # The store is away. Whoever waits does so by its own timeout; the next poll tries again.
                    pass
                # Under a stream of hints the watcher spends a third of its time asking, not all of it.
                await asyncio.sleep(min(REST_MAX_SECONDS, (clock.time() - started) * REST_FACTOR))
        except Exception as error:
            self._fail_all(error)

    async def _look(self, organization: str) -> None:
        waiters = [waiter for waiter in self._waiters.get(organization, ()) if not waiter.done.done()]
        await self._ask(organization, waiters)
        for waiter in waiters:
            if waiter.satisfied and not waiter.done.done():
                waiter.done.set_result(None)
        try:
            await self._verify(organization, [waiter for waiter in waiters if not waiter.done.done()])
        except NotFound:
            for waiter in waiters:
                await self._verify_one(organization, waiter)

    async def _verify_one(self, organization: str, waiter: _Waiter) -> None:
        try:
            await self._verify(organization, [waiter])
        except NotFound as error:
            if not waiter.done.done():
                waiter.done.set_exception(error)

    async def _ask(self, organization: str, waiters: Sequence[_Waiter]) -> None:
        open_ids = list(set().union(*(waiter.open for waiter in waiters))) if waiters else []
        for start in range(0, len(open_ids), ASK_MAX_IDS):
            for each in await self._views.ended(organization, open_ids[start : start + ASK_MAX_IDS]):
                for waiter in waiters:
                    if each.id in waiter.open:
                        waiter.note(each)

    async def _verify(self, organization: str, waiters: Sequence[_Waiter]) -> None:
        """Check that there are such tasks, some at a time. Raises `NotFound`."""
        budget = VERIFY_MAX_IDS
        for waiter in waiters:
            for task_id in list(waiter.unverified)[:budget]:
                if await self._views.task(organization, task_id) is None:
                    raise NotFound(f"there is no task {task_id}", what="task", id=task_id)
                waiter.unverified.discard(task_id)
                budget -= 1

    def _doubt_all(self) -> None:
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.unverified |= waiter.open

    def _fail_all(self, error: Exception) -> None:
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done.done():
                    waiter.done.set_exception(error)


def _timed_out(waiter: _Waiter, timeout: float | None) -> WaitTimedOut:
    left = sorted(waiter.open)
    shown = ", ".join(left[:SHOWN_IDS]) + (f" and {len(left) - SHOWN_IDS} more" if len(left) > SHOWN_IDS else "")
    waited = round(timeout or 0.0, 3)
    return WaitTimedOut(
        f"{len(left)} of {len(left) + len(waiter.ended)} tasks had not ended after {waited:g} s: {shown}",
        task_ids=left,
        timeout=timeout,
    )
