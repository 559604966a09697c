"""Runs the duties of the system: it only waits and calls. Any number of processes may do so at once."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from perdure.ambient import Chance, Clock
from perdure.domain import limits
from perdure.errors import StoreUnusable, Unavailable
from perdure.store.ledger import Swept
from perdure.store.wakeups import Subscription, Topic, Wakeups

BACKOFF_FIRST_US = limits.SECOND_US // 4
BACKOFF_LAST_US = 5 * limits.SECOND_US
JITTER = 0.1
PATIENT_HINTS = 3
REST_DOUBLINGS = 3
QUIET_US = 60 * limits.SECOND_US
"""A duty that has found that nothing can come to be done runs that rarely, until something is announced."""
STIRS = Topic.READY | Topic.DUE
"""What ends such a quiet, beside what wakes the duty anyway: after it, the duty's interval counts again."""
STORE_TIME_FRESH_US = 5 * limits.SECOND_US
EARLY_US = 1_000
"""How long after its instant a thing is looked for, so that it is due by the store's clock when it is looked for."""

_log = logging.getLogger("perdure.duties")


class Duty(Protocol):
    """A bounded, repeatable background task of the system. Any number of runners, no leader."""

    @property
    def name(self) -> str:
        """What it does, in a word."""

    @property
    def interval_us(self) -> int:
        """The longest wait between two runs."""

    @property
    def wakes_on(self) -> Topic:
        """The hints at which it runs before its interval is over."""

    @property
    def rest_us(self) -> int:
        """The shortest wait between two runs."""

    async def run_once(self, now_us: int) -> Swept:
        """Do a bounded amount. `now_us` is the runner's monotonic clock: it shows jumps, it decides nothing."""


class StoreTime(Protocol):
    """Whoever knows the store's time."""

    async def now_us(self) -> int:
        """Microseconds since 1970 UTC."""


class DutyRunner:
    """Runs each duty in a named asyncio task of its own until it is stopped. A duty that fails is tried again."""

    def __init__(
        self, duties: Sequence[Duty], store_time: StoreTime, wakeups: Wakeups, clock: Clock, chance: Chance
    ) -> None:
        self._duties = duties
        self._store_time = store_time
        self._wakeups = wakeups
        self._clock = clock
        self._chance = chance
        self._tasks: list[asyncio.Task[None]] = []
        self._offset_us = 0
        self._offset_read_us: int | None = None

    def start(self) -> None:
        """Begin. Harmless when it runs already."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._keep_running(duty), name=f"perdure-duty-{duty.name}") for duty in self._duties
            ]

    async def stop(self) -> None:
        """End within a moment: a run under way is not waited for, and its transaction commits or not as a whole."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def __aenter__(self) -> "DutyRunner":
        self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    async def _keep_running(self, duty: Duty) -> None:
        subscription = self._wakeups.subscribe(duty.wakes_on)
        stirring = self._wakeups.subscribe(duty.wakes_on | STIRS)
        failures = fruitless = 0
        hinted = False
        try:
            while True:
                try:
                    ran_us = self._clock.monotonic_us()
                    swept, wait_us = await self._run(duty)
                except Exception as error:
                    failures += 1
                    await asyncio.sleep(self._after_failure(duty, error, failures) / limits.SECOND_US)
                else:
                    failures = 0
                    fruitless = fruitless + 1 if hinted and not swept.moved else 0
                    rest_us = _rest_us(duty, fruitless)
                    if swept.quiet and wait_us > duty.interval_us:
                        hinted = await self._pause_quietly(duty, stirring, ran_us, rest_us, wait_us)
                    else:
                        hinted = await self._pause(subscription, rest_us, wait_us)
        finally:
            subscription.close()
            stirring.close()

    async def _run(self, duty: Duty) -> tuple[Swept, int]:
        """Run once: what that did, and the microseconds until the next run is due."""
        swept = await duty.run_once(self._clock.monotonic_us())
        if swept.moved:
            _log.debug("duty %s moved %d", duty.name, swept.moved)
        if swept.more:
            return swept, duty.rest_us
        longest_us = max(QUIET_US, duty.interval_us) if swept.quiet else duty.interval_us
        wait_us = round(longest_us * (1.0 - self._chance.uniform(0.0, JITTER)))
        if swept.again_in_us is not None:
            wait_us = min(wait_us, max(swept.again_in_us, duty.rest_us))
        if swept.next_us is None:
            return swept, wait_us
        due_us = await self._until(swept.next_us)
        if not swept.moved:
            # What is due and does not move (its queue is gone, another process has it) must not keep this one busy.
            due_us = max(due_us, duty.rest_us)
        return swept, min(wait_us, due_us)

    async def _until(self, instant_us: int) -> int:
        """Microseconds from now until an instant of the store's clock has passed."""
        now_us = self._clock.monotonic_us()
        if self._offset_read_us is None or now_us - self._offset_read_us > STORE_TIME_FRESH_US:
            store_us = await self._store_time.now_us()
            now_us = self._clock.monotonic_us()
            self._offset_us, self._offset_read_us = store_us - now_us, now_us
        return max(0, instant_us - (now_us + self._offset_us) + EARLY_US)

    async def _pause(self, subscription: Subscription, rest_us: int, wait_us: int) -> bool:
        """Rest, then wait for the time or for a hint; whether it was a hint."""
        await asyncio.sleep(min(rest_us, wait_us) / limits.SECOND_US)
        left_us = wait_us - rest_us
        return left_us > 0 and bool(await subscription.wait(left_us / limits.SECOND_US))

    async def _pause_quietly(self, duty: Duty, stirring: Subscription, ran_us: int, rest_us: int, wait_us: int) -> bool:
        """As `_pause`; what may have ended the quiet brings the next run to its usual time."""
        await asyncio.sleep(rest_us / limits.SECOND_US)
        until_us = ran_us + wait_us
        while (left_us := until_us - self._clock.monotonic_us()) > 0:
            hinted = await stirring.wait(left_us / limits.SECOND_US)
            if hinted & duty.wakes_on:
                return True
            if hinted:
                until_us = min(until_us, ran_us + duty.interval_us)
        return False

    def _after_failure(self, duty: Duty, error: Exception, failures: int) -> int:
        """Tell, and the microseconds to wait."""
        wait_us = min(BACKOFF_LAST_US, BACKOFF_FIRST_US << min(failures - 1, 10))
        wait_us = round(wait_us * (1.0 + self._chance.uniform(0.0, JITTER)))
        seconds = wait_us / limits.SECOND_US
        if isinstance(error, Unavailable | StoreUnusable):
            level = logging.WARNING if failures == 1 else logging.DEBUG
            how = "is unavailable" if isinstance(error, Unavailable) else "must not be used"
            _log.log(level, "duty %s: the store %s (%s); again in %.1f s", duty.name, how, error, seconds)
        else:
            _log.error("duty %s failed; again in %.1f s", duty.name, seconds, exc_info=error)
        return wait_us


def _rest_us(duty: Duty, fruitless: int) -> int:
    """The shortest wait before the next run: longer while one hint after the other has led to nothing.

    A busy system hints without end, and there claims promote what is due. What this runner knows to be due comes at
    its time all the same.
    """
    return duty.rest_us << min(max(fruitless - PATIENT_HINTS, 0), REST_DOUBLINGS)
