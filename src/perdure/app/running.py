"""Doing the work: a worker of the app, the duties beside it, and the end of both by a signal."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from perdure.engine.requests import Principal
from perdure.errors import Misuse, Unavailable
from perdure.wiring import System
from perdure.worker.backoff import Backoff
from perdure.worker.registry import Registry

if TYPE_CHECKING:
    from perdure.app.schedules import AppSchedules
    from perdure.worker.loop import Ending, Worker

log = logging.getLogger("perdure.run")

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Employer(Protocol):
    """What a worker needs of its app."""

    registry: Registry
    principal: Principal
    schedules: "AppSchedules"

    async def system(self) -> System:
        """Store and engine, opened if need be."""


class Working:
    """A worker of an app, and the system's duties beside it unless they are done elsewhere.

    `await working.run()` works until `drain()` is called; `async with working:` works during the block and drains at
    its end.
    """

    def __init__(self, app: Employer, options: dict[str, Any], *, duties: bool = True) -> None:
        self._app = app
        self._options = options
        self._duties = duties
        self._worker: Worker | None = None
        self._draining = False
        self._running: asyncio.Task[Any] | None = None

    async def run(self) -> "Ending | None":
        """Work until drained, and tell why it ended. What the worker still holds after its grace is handed back, at no
        cost to the tasks.
        """
        await self._await_gateway()
        return await self._work(*await self._prepared())

    def drain(self) -> None:
        """Claim nothing more, finish what is held within the grace, then end. Harmless when done already."""
        self._draining = True
        if self._worker is not None:
            self._worker.drain()

    async def __aenter__(self) -> Self:
        system, worker = await self._prepared()
        self._running = asyncio.create_task(self._work(system, worker), name="perdure-worker")
        self._running.add_done_callback(_tell_of_failure)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()
        if self._running is not None:
            await self._running

    async def _await_gateway(self) -> None:
        """Wait until the gateway answers, so that it does not matter which of the two is started first."""
        system = await self._app.system()
        backoff = Backoff(system.chance)
        told = False
        while system.store is None and not self._draining:
            try:
                await system.engine.kinds(self._app.principal)
            except Unavailable as error:
                if not told:
                    log.warning("the worker waits for its gateway: %s", error)
                told = True
            else:
                return
            await asyncio.sleep(backoff.next_seconds())

    async def _prepared(self) -> "tuple[System, Worker]":
        if self._worker is not None:
            raise Misuse("this worker has been started already: a worker runs once, make another one")
        system = await self._app.system()
        if system.store is not None or not self._draining:
            await system.engine.declare(self._app.registry.definitions(), self._app.principal)
            await self._app.schedules.declare_on(system.engine.schedules, self._app.principal)
        system.known_kinds.update(handler.kind for handler in self._app.registry)
        self._worker = system.worker(self._app.registry, **self._options)
        return system, self._worker

    async def _work(self, system: System, worker: "Worker") -> "Ending | None":
        if self._draining:
            return None
        async with system.engine.duty_runner() if self._duties else contextlib.nullcontext():
            return await worker.run()


def _tell_of_failure(running: "asyncio.Task[Any]") -> None:
    if not running.cancelled() and running.exception() is not None:
        log.error("the worker has stopped", exc_info=running.exception())


async def run_until_signal(working: Working) -> "Ending | None":
    """Work until SIGTERM or SIGINT: the first drains, the second ends the process at once."""
    with signals_drain(working.drain):
        return await working.run()


@contextlib.contextmanager
def signals_drain(drain: Callable[[], None]) -> Iterator[None]:
    """The first SIGTERM or SIGINT drains, a second one ends the process at once. Only in the main thread."""
    loop = asyncio.get_running_loop()
    seen: list[signal.Signals] = []

    def received(number: signal.Signals) -> None:
        if seen:
            log.warning("%s again: ending at once, what is held comes back when its leases run out", number.name)
            logging.shutdown()
            os._exit(128 + number)
        seen.append(number)
        log.info("%s: draining; once more ends at once", number.name)
        drain()

    if threading.current_thread() is not threading.main_thread():
        raise Misuse("only the main thread gets signals: there, run the app; elsewhere use `async with app.worker():`")
    for number in SIGNALS:
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
