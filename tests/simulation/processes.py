"""Simulated processes within one event loop: each can be stopped like by SIGSTOP, and killed like by SIGKILL.

Everything that a process has running carries it in its context; the loop keeps the callbacks of a stopped process until
it goes on. A killed process is one that never does: nothing of it runs any more, not even a `finally`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

from virtual_time import NothingLeftToHappen, VirtualLoop

RUNNING_AS: ContextVar["Process | None"] = ContextVar("running_as", default=None)


class Process:
    """What runs together, stops together and dies together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopped = False
        self.dead = False
        self.ended = asyncio.Event()
        self._kept: list[Callable[[], None]] = []
        self._context = copy_context()
        self._context.run(RUNNING_AS.set, self)

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as this process; the process has ended when it returns."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(main, context=self._context.copy())
        task.add_done_callback(self._main_ended)

    def _main_ended(self, task: "asyncio.Task[None]") -> None:
        self.ended.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"the main of {self.name} failed", "exception": error}
            )

    def stop(self) -> None:
        """Let nothing of it run from now on."""
        self.stopped = True

    def go_on(self) -> None:
        """Let it run again, beginning with all that became due meanwhile."""
        if self.dead or not self.stopped:
            return
        self.stopped = False
        self._release()

    def kill(self) -> None:
        """Let nothing of it run ever again."""
        self.stopped = self.dead = True
        self.ended.set()

    def bury(self) -> None:
        """At the end of everything: let the remains unwind, so that nothing is left half done."""
        self.stopped = False
        self._release()

    def keep(self, callback: Callable[[], None]) -> None:
        """Keep a callback until the process goes on."""
        self._kept.append(callback)

    def _release(self) -> None:
        kept, self._kept = self._kept, []
        loop = asyncio.get_running_loop()
        for callback in kept:
            loop.call_soon(callback)


class SimulationLoop(VirtualLoop):
    """A loop in virtual time that runs nothing of stopped processes. There are no sockets and no threads."""

    def __init__(self) -> None:
        super().__init__()
        self._selector.select = self._select
        self.made: list[asyncio.Task[Any]] = []
        """Every task, so that those of dead processes are not collected half done."""
        self.set_task_factory(self._make)

    def _select(self, timeout: float | None = None) -> list[Any]:
        """Nothing comes from outside: to ask the system each time would cost a good part of a life."""
        if timeout is None:
            raise NothingLeftToHappen("no timer is set, and nothing is ready")
        self.jump(timeout)
        return []

    def _make(self, loop: Any, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        self.made.append(task)
        if len(self.made) > 4_000:
            self.made = [each for each in self.made if not each.done()]
        return task

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        process = RUNNING_AS.get() if context is None else context.get(RUNNING_AS)
        if process is None or not process.stopped:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        process.keep(lambda: None if handle.cancelled() else handle._run())
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        process = RUNNING_AS.get() if context is None else context.get(RUNNING_AS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        cell: list[asyncio.TimerHandle] = []
        handle = super().call_at(when, _fire, process, cell, callback, args, context=context)
        cell.append(handle)
        return handle


def _fire(process: Process, cell: list[asyncio.TimerHandle], callback: Any, args: tuple[Any, ...]) -> None:
    if not process.stopped:
        callback(*args)
        return
    context = copy_context()
    process.keep(lambda: None if cell[0].cancelled() else context.run(callback, *args))


async def die() -> None:
    """Where a killed process stops for good."""
    await asyncio.sleep(0)
