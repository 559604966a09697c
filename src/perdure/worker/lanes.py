"""The slots of a worker: who waits, who runs, and how a running handler is told to stop."""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable, Iterable

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Outcome
from perdure.worker import tracing
from perdure.worker.executor import Executor
from perdure.worker.held import HeldAttempt, StopReason
from perdure.worker.judging import outcome_of_stop

logger = logging.getLogger("perdure.worker")

BREATHE_AFTER_US = 5_000
"""A lane that has run handlers that long without waiting lets the event loop look after others."""
CANCEL_ANSWER_US = SECOND_US
"""A cancel is answered at least that long before its time is over."""

Finished = Callable[[HeldAttempt, Outcome | None], None]


class Lanes:
    """A lane is a task that runs one waiting attempt after the other; a new one starts when a handler waits while
    others could run. So handlers that never wait share one task, and the others have one each.
    """

    def __init__(self, clock: Clock, concurrency: int, stop_grace: float, finished: Finished) -> None:
        self.concurrency = concurrency
        self.waiting: deque[HeldAttempt] = deque()
        self.active = 0
        self.left_alone = 0
        """Handlers that did not stop when told to and were left to themselves, since the start."""
        self._clock = clock
        self._stop_grace = stop_grace
        self._finished = finished
        self._running: dict[str, HeldAttempt] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._clean = contextvars.copy_context()
        self._quiet: asyncio.Future[None] | None = None
        self._executor: Executor

    def use(self, executor: Executor) -> None:
        """Say who runs the handlers."""
        self._executor = executor

    @property
    def running(self) -> list[HeldAttempt]:
        """The attempts whose handlers run now."""
        return list(self._running.values())

    def admit(self, attempts: Iterable[HeldAttempt]) -> None:
        """Let attempts wait for their turn."""
        self.waiting.extend(attempts)
        self.fill()

    def fill(self) -> None:
        """Start a lane if somebody waits and a slot is free. The lane calls this again as soon as its handler waits."""
        if self.waiting and self.active < self.concurrency:
            self.active += 1
            task = self._loop.create_task(self._lane(), context=self._clean.copy())
            self._tasks.add(task)
            task.add_done_callback(self._lane_ended)

    async def _lane(self) -> None:
        lane = asyncio.current_task()
        assert lane is not None
        breathed_us = self._clock.monotonic_us()
        while self.waiting and self.active <= self.concurrency:
            held = self.waiting.popleft()
            held.begun = True
            held.lane = lane
            self._running[held.hold.attempt_id] = held
            outcome = await self._executor.execute(held)
            if held.killed:
                if held.lost and outcome is not None:
                    self._finished(held, outcome)
                return
            self._end(held, outcome)
            if lane.cancelling():
                break
            if held.started_us is not None and held.started_us - breathed_us > BREATHE_AFTER_US:
                await asyncio.sleep(0)
                breathed_us = self._clock.monotonic_us()
        self._free()

    def _lane_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a lane broke; please report it", exc_info=task.exception())

    def _free(self) -> None:
        self.active -= 1
        self.fill()
        if self._quiet is not None and not self.active and not self._quiet.done():
            self._quiet.set_result(None)

    def _end(self, held: HeldAttempt, outcome: Outcome | None) -> None:
        held.ended = True
        held.lane = None
        held.on_stop = None
        if held.kill_timer is not None:
            held.kill_timer.cancel()
        self._running.pop(held.hold.attempt_id, None)
        tracing.end(held, outcome)
        self._finished(held, outcome)

    def stop(self, held: HeldAttempt, reason: StopReason, within_us: int | None = None) -> None:
        """Have an attempt stopped: one that waits ends here, a running handler is told and gets its grace."""
        if not held.ask_to_stop(reason):
            return
        if not held.begun:
            self.waiting.remove(held)
            self._end(held, outcome_of_stop(held))
            return
        if held.on_stop is not None:
            held.on_stop()
            held.delivered_us = self._clock.monotonic_us()
        grace = self._stop_grace
        if within_us is not None:
            grace = min(grace, max(0, within_us - CANCEL_ANSWER_US) / SECOND_US)
        held.kill_timer = self._loop.call_later(grace, self._leave_alone, held)

    def _leave_alone(self, held: HeldAttempt) -> None:
        """The handler did not stop: go on without it. It runs on, fenced off; its slot is free."""
        if held.ended:
            return
        held.killed = True
        self.left_alone += 1
        logger.error(
            "the handler of task %s (%s) did not stop within its grace after %s and is left to itself",
            held.hold.task_id,
            held.lease.kind,
            held.stop_reason,
        )
        self._end(held, outcome_of_stop(held))
        self._free()

    async def quiet(self, timeout: float) -> bool:
        """Wait until no handler runs; false after `timeout` seconds."""
        if not self.active:
            return True
        self._quiet = self._loop.create_future()
        await asyncio.wait([self._quiet], timeout=timeout)
        self._quiet = None
        return not self.active

    async def close(self) -> None:
        """Cancel what still runs, without outcomes, and give it one turn of the loop to notice."""
        self.waiting.clear()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=0.1)
