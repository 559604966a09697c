"""For tests of programs that use perdure: a store in memory, time that moves only when told, no sleeping.

async def test_a_failed_charge_is_tried_again():
    async with TestApp(app) as t:
        handle = await app.submit(charge, order=7)
        await t.run_until_idle()
        await t.advance(60)
        assert await handle.result() == "charged"
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from perdure.ambient import Chance, Ids, SystemClock
from perdure.app.app import App
from perdure.app.opening import Openings
from perdure.domain.limits import LIST_MAX_ROWS, SECOND_US
from perdure.errors import Misuse
from perdure.store.views import TaskFilter, TaskView
from perdure.wiring import System, open_system

R = TypeVar("R")

START_US = 1_800_000_000 * SECOND_US
"""The virtual now at the beginning of a test: 2027-01-15 08:00 UTC."""
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
    `seed` makes ids and jitter the same in every run.
    """

    __test__ = False

    def __init__(self, app: App, *, seed: int = 0) -> None:
        self.app = app
        self.clock = VirtualClock()
        self._seed = seed
        self._system: System | None = None
        self._openings: Openings | None = None

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
        await self.app.system()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.app.close()
        assert self._openings is not None
        self.app.openings, self._openings, self._system = self._openings, None, None

    @property
    def now_us(self) -> int:
        """The virtual now: microseconds since 1970 UTC."""
        return self.clock.wall_us()

    async def run_until_idle(self, limit: int = ATTEMPTS_MAX) -> int:
        """Do all that is due now, and all that comes of it: duties, handlers, retries without delay, cascades.

        Nothing is waited for that is due later; `advance` goes there. Returns how many attempts were made. Raises
        `Misuse` when the work has not ended after `limit` attempts.
        """
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


class SyncTestApp:
    """The same for tests without `await`: inside the `with` block, `app.sync` works on a store in memory."""

    __test__ = False

    def __init__(self, app: App, *, seed: int = 0) -> None:
        self.app = app
        self._testing = TestApp(app, seed=seed)
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
