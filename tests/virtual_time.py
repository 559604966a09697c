"""An event loop whose time is virtual: when nothing is ready it jumps to its next timer instead of waiting for it.

Use it in one of three ways:

- ``run(main)`` runs the coroutine function ``main`` to its end on a fresh `VirtualLoop`.
- A folder's conftest defines ``pytest_asyncio_loop_factories(config, item)`` to return ``{"virtual": VirtualLoop}``;
  every async test in the folder then runs in virtual time.
- ``VirtualClock(asyncio.get_running_loop())`` is the `perdure.ambient.Clock` that belongs to the loop.

Threads of `run_in_executor` and `asyncio.to_thread` are waited for in real time before the virtual clock moves, for at
most `VirtualLoop.thread_patience` seconds at a stretch.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_SECONDS = 1_000.0
WALL_START_US = 1_800_000_000_000_000


class NothingLeftToHappen(RuntimeError):
    """Every task waits for something that no timer, socket or thread will ever bring: a deadlock."""


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Looks at the real sockets without waiting, and lets the loop's clock jump instead of sleeping."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if events or timeout == 0:
            return events
        if self.loop.threads_busy:
            events = super().select(self.loop.thread_patience)
            if events:
                return events
        if timeout is None:
            if self.loop.waits_for_outside or self.loop.threads_busy:
                return super().select(self.loop.thread_patience)
            raise NothingLeftToHappen("no timer is set, nothing is ready, and no thread is at work")
        self.loop.jump(timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual and starts at `START_SECONDS`. It moves only when nothing is ready to run."""

    thread_patience = 0.05
    """Real seconds for which busy threads hold the virtual clock still."""
    waits_for_outside = False
    """Set it when a thread of your own will call `call_soon_threadsafe`: then an idle loop is no deadlock."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        selector.loop = self
        self._virtual_seconds = START_SECONDS
        self.threads_busy = 0
        super().__init__(selector)
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual_seconds

    def jump(self, seconds: float) -> None:
        """Move the clock forward; timers that became due run next. A test may call it to skip time under load."""
        self._virtual_seconds += max(0.0, seconds)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self.threads_busy += 1
        future.add_done_callback(self._thread_ended)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        self.waits_for_outside = True
        await super().shutdown_default_executor()

    def _thread_ended(self, _future: Any) -> None:
        self.threads_busy -= 1


class VirtualClock:
    """The `perdure.ambient.Clock` of a `VirtualLoop`. Its wall clock can be stepped; its boot can be changed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wall_offset_us = WALL_START_US - round(START_SECONDS * 1_000_000)
        self._boot = 1

    def monotonic_us(self) -> int:
        return round(self._loop.time() * 1_000_000)

    def boot_us(self) -> int:
        return self.monotonic_us()

    def boot_id(self) -> str:
        return f"virtual-boot-{self._boot}"

    def wall_us(self) -> int:
        return self.monotonic_us() + self._wall_offset_us

    def step_wall(self, step_us: int) -> None:
        """Step the wall clock, either way, as an operator or NTP would."""
        self._wall_offset_us += step_us

    def reboot(self) -> None:
        """Another boot id, as after a restart of the machine."""
        self._boot += 1


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main()` to its end in virtual time and return its result. Pending tasks are cancelled at the end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())
