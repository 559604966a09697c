"""For tests of programs that use perdure: a store in memory, time that moves only when told, no sleeping.

async def test_a_failed_charge_is_tried_again():
    async with TestApp(app) as t:
        handle = await app.submit(charge, order=7)
        await t.run_until_idle()
        await t.advance(60)
        assert await handle.result() == "charged"
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from perdure.ambient import Chance, Ids, SystemClock
from perdure.app.app import App
from perdure.app.given import check_given
from perdure.app.opening import Openings
from perdure.app.patience import Patience, Why
from perdure.domain.limits import LIST_MAX_ROWS, SECOND_US
from perdure.engine.quantities import is_finite
from perdure.errors import Misuse
from perdure.store.views import TaskFilter, TaskView
from perdure.wiring import System, open_system

R = TypeVar("R")

START_US = 1_800_000_000 * SECOND_US
"""The virtual now at the beginning of a test: 2027-01-15 08:00 UTC."""
STILL_SECONDS = 1.0
"""So long, in real time, a wait goes on while nothing is done: the test may be about to."""
ATTEMPTS_MAX = 10_000
"""After so many attempts, something makes work for ever."""


class VirtualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start_us: int = START_US) -> None:
        self._now_us = start_us

    def monotonic_us(self) -> int:
        """See `ambient.Clock`."""
        return self._now_us

    def boot_us(self) -> int:
        """See `ambient.Clock`."""
        return self._now_us

    def boot_id(self) -> str:
        """See `ambient.Clock`."""
        return "virtual"

    def wall_us(self) -> int:
        """See `ambient.Clock`."""
        return self._now_us

    def move(self, by_us: int) -> None:
        """Let `by_us` microseconds pass at once."""
        self._now_us += by_us


@dataclass(frozen=True, slots=True)
class Submission:
    """A task that was submitted during the test, with its payload as plain JSON values."""

    id: str
    kind: str
    payload: Any
    view: TaskView


class TestApp:
    """An app on a store in memory, in virtual time, for as long as the `async with` block lasts.

    Handlers run in this event loop and its threads, called by a real worker; what they sleep themselves is real time.
    `seed` makes ids and jitter the same in every run. The schedules that stand above tasks of the app are there, as if
    a worker had started, and fire when time passes; `schedules=False` leaves them out.
    """

    __test__ = False

    def __init__(self, app: App, *, seed: int = 0, schedules: bool = True) -> None:
        check_given(app, App, "app", "the perdure.App to be tested, as in TestApp(app)")
        check_given(seed, int, "seed", "a whole number")
        check_given(schedules, bool, "schedules", "true or false")
        self.app = app
        self.clock = VirtualClock()
        self._seed = seed
        self._schedules = schedules
        self._system: System | None = None
        self._openings: Openings | None = None
        self._patience: Patience | None = None
        self._runs = 0
        """How often it was begun to do what is due."""
        self._running = 0

    async def __aenter__(self) -> Self:
        if self._system is not None:
            raise Misuse("this TestApp is in use already: make one for each test")
        self._system = await open_system(
            self.app.settings.but(store=":memory:"),
            clock=self.clock,
            ids=Ids(self.clock, Chance(self._seed).bits),
            chance=Chance(self._seed),
            inline=True,
        )
        self._openings, self.app.openings = self.app.openings, Openings(self._opened_once())
        self._patience, self.app.patience = self.app.patience, _TestPatience(self._stands_still)
        system = await self.app.system()
        # As a worker does when it starts.
        await system.engine.declare(self.app.registry.definitions(), self.app.principal)
        if self._schedules:
            await self.app.schedules.declare_on(system.engine.schedules, self.app.principal)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.app.close()
        assert self._openings is not None
        assert self._patience is not None
        self.app.openings, self._openings, self._system = self._openings, None, None
        self.app.patience, self._patience = self._patience, None

    @property
    def now_us(self) -> int:
        """The virtual now: microseconds since 1970 UTC."""
        return self.clock.wall_us()

    async def run_until_idle(self, limit: int = ATTEMPTS_MAX) -> int:
        """Do all that is due now, and all that comes of it: duties, handlers, retries without delay, cascades.

        Nothing is waited for that is due later; `advance` goes there. Returns how many attempts were made. Raises
        `Misuse` when the work has not ended after `limit` attempts.
        """
        self._runs += 1
        self._running += 1
        try:
            return await self._until_idle(limit)
        finally:
            self._running -= 1

    async def _until_idle(self, limit: int) -> int:
        attempts = 0
        while attempts < limit:
            moved, _ = await self._duties()
            claimed = await self._work(limit - attempts)
            attempts += claimed
            if not moved and not claimed:
                return attempts
        raise Misuse(f"still not idle after {limit} attempts: does a handler make new work, or snooze, for ever?")

    async def advance(self, seconds: float) -> int:
        """Let virtual time pass, stopping at every instant at which something is due to do it. Returns the attempts."""
        if not is_finite(seconds, 0):
            raise Misuse(f"time passes by seconds, 0 or more, not by {seconds!r}")
        until_us = self.clock.wall_us() + round(seconds * SECOND_US)
        attempts = await self.run_until_idle()
        while (now_us := self.clock.wall_us()) < until_us:
            _, next_us = await self._duties()
            stop_us = until_us if next_us is None else min(until_us, max(next_us, now_us + 1))
            self.clock.move(stop_us - now_us)
            attempts += await self.run_until_idle()
        return attempts

    def submitted(self, kind: str | None = None, **fields: Any) -> list[Submission]:
        """The tasks submitted so far, oldest first: of this kind, and with these fields in their payloads."""
        wanted = {name: _plain(value) for name, value in fields.items()}
        found = _at_once(self._submissions(kind))
        return [each for each in found if _has(each.payload, wanted)]

    def assert_submitted(self, kind: str, *, times: int | None = None, **fields: Any) -> list[Submission]:
        """Fail unless a task of this kind, with these fields in its payload, was submitted (`times` times exactly).

        Returns those that were.
        """
        found = self.submitted(kind, **fields)
        if len(found) == times or (times is None and found):
            return found
        said = ", ".join(f"{name}={value!r}" for name, value in fields.items())
        expected = "at least one" if times is None else str(times)
        others = "".join(f"\n  {each.kind}: {each.payload!r}" for each in self.submitted()) or " nothing"
        raise AssertionError(
            f"expected {expected} submitted {kind!r} with ({said}), found {len(found)}; submitted were:{others}"
        )

    async def _stands_still(self, seconds: float) -> bool:
        """Whether, after that long, nothing is done and nothing was begun, and no worker of the test's own is there."""
        before = self._runs
        await asyncio.sleep(seconds)
        if self._running or self._runs != before:
            return False
        workers = await self._system_in_use().engine.views.workers(self.app.principal.organization, None)
        return all(each.left_us is not None for each in workers)

    def _system_in_use(self) -> System:
        if self._system is None:
            raise Misuse("this TestApp is not in use: work with it inside `async with`")
        return self._system

    def _opened_once(self) -> Callable[[], Coroutine[Any, Any, System]]:
        loop = asyncio.get_running_loop()

        async def opened() -> System:
            if asyncio.get_running_loop() is not loop:
                raise Misuse(
                    "the store of a TestApp belongs to one event loop: await there, or use SyncTestApp for app.sync"
                )
            return self._system_in_use()

        return opened

    async def _duties(self) -> tuple[int, int | None]:
        """Run every duty until it has nothing more; how much moved, and when something is next due."""
        moved, upcoming = 0, []
        for duty in self._system_in_use().engine.duties():
            while True:
                swept = await duty.run_once(self.clock.monotonic_us())
                moved += swept.moved
                if not swept.more:
                    break
            if swept.next_us is not None:
                upcoming.append(swept.next_us)
        return moved, min(upcoming, default=None)

    async def _work(self, limit: int) -> int:
        """Let a worker do what is ready; how many attempts it made, at most `limit`."""
        # The worker measures its own waiting, which is real; only the store's time is virtual.
        system = replace(self._system_in_use(), clock=SystemClock())
        await system.engine.declare(self.app.registry.definitions(), self.app.principal)
        worker = system.worker(self.app.registry, max_tasks=limit, **_UNTIL_IDLE)
        await worker.run()
        return worker.claimed

    async def _submissions(self, kind: str | None) -> list[Submission]:
        views, organization = self._system_in_use().engine.views, self.app.principal.organization
        where = TaskFilter(kinds=(kind,) if kind is not None else ())
        found: list[TaskView] = []
        cursor: str | None = None
        while True:
            page = await views.tasks(organization, where, LIST_MAX_ROWS, cursor)
            found.extend(page.rows)
            cursor = page.cursor
            if cursor is None:
                break
        whole = [await views.task(organization, each.id) for each in reversed(found)]
        return [Submission(each.id, each.kind, _payload(each), each) for each in whole if each is not None]


class _TestPatience(Patience):
    """Raises where nothing will come of a wait: time stands still, and nobody works."""

    def __init__(self, stands_still: Callable[[float], Awaitable[bool]]) -> None:
        super().__init__()
        self._stands_still = stands_still

    async def bear(self, wait: Coroutine[Any, Any, R], why: Why) -> R:
        """As `Patience.bear`. Raises `Misuse` where nothing will run."""
        waiting = asyncio.ensure_future(super().bear(wait, why))
        looking = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({waiting, looking}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                looking.result()  # Where the store is closed, that is what is wrong.
                raise Misuse(
                    "nothing will run: time stands still in a TestApp, and it works only when it is told; call"
                    " run_until_idle() or advance(seconds) before you wait for a result"
                )
            return await waiting
        finally:
            looking.cancel()
            waiting.cancel()
            await asyncio.gather(waiting, looking, return_exceptions=True)

    async def _look(self) -> None:
        while not await self._stands_still(STILL_SECONDS):
            pass


class SyncTestApp:
    """The same for tests without `await`: inside the `with` block, `app.sync` works on a store in memory."""

    __test__ = False

    def __init__(self, app: App, *, seed: int = 0, schedules: bool = True) -> None:
        self.app = app
        self._testing = TestApp(app, seed=seed, schedules=schedules)
        self._portal = app.sync.portal

    def __enter__(self) -> Self:
        self._portal.close()
        self._portal.call(self._testing.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.call(self._testing.__aexit__, kind, error, trace)
        self._portal.close()

    def run_until_idle(self, limit: int = ATTEMPTS_MAX) -> int:
        """See `TestApp.run_until_idle`."""
        return self._portal.call(self._testing.run_until_idle, limit)

    def advance(self, seconds: float) -> int:
        """See `TestApp.advance`."""
        return self._portal.call(self._testing.advance, seconds)

    def submitted(self, kind: str | None = None, **fields: Any) -> list[Submission]:
        """See `TestApp.submitted`."""
        return self._portal.call(_later, self._testing.submitted, kind, **fields)

    def assert_submitted(self, kind: str, *, times: int | None = None, **fields: Any) -> list[Submission]:
        """See `TestApp.assert_submitted`."""
        return self._portal.call(_later, self._testing.assert_submitted, kind, times=times, **fields)


async def _later(function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    """Call a plain function where a coroutine is wanted."""
    return function(*args, **kwargs)


_UNTIL_IDLE: dict[str, Any] = {"stop_when_idle": True, "keeper_thread": False, "prefetch": 0, "poll": 0.01}


def _payload(view: TaskView) -> Any:
    return None if view.payload is None else msgspec.json.decode(view.payload.data)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _has(payload: Any, wanted: dict[str, Any]) -> bool:
    return not wanted or (
        isinstance(payload, dict) and all(name in payload and payload[name] == wanted[name] for name in wanted)
    )


def _at_once(reading: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine that never waits: reading a store in memory does not."""
    try:
        reading.send(None)
    except StopIteration as answer:
        result: R = answer.value
        return result
    reading.close()
    raise Misuse("the store of this TestApp waits, so it is not one in memory")
