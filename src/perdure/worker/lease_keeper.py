"""Keeps the leases of everything a worker holds, and tells its handlers when to stop.

It runs in a thread with an event loop of its own, so that a handler that keeps the worker's loop busy costs no lease;
in a simulation it runs on the worker's loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from perdure.ambient import Chance, Clock
from perdure.domain.attempt import Renewal
from perdure.domain.limits import SECOND_US
from perdure.errors import Unavailable
from perdure.store.ledger import Control, Renewed, WorkerInfo, WorkerOrder
from perdure.worker.backoff import Backoff
from perdure.worker.held import HeldAttempt, StopReason
from perdure.worker.work_source import WorkSource
from perdure.worker.worker_settings import WorkerSettings

logger = logging.getLogger("perdure.worker")

T = TypeVar("T")

TELL_AFTER_US = SECOND_US // 2
"""A handler that runs longer than this, or takes longer to stop, is reported so before the next renewal is due."""
BEAT_EVERY_MIN_US = SECOND_US
"""Hints of orders make it look no more often than this."""
CALL_SECONDS_MIN = 1.0
"""A call is given so long even where a lease runs out before: who may be slow for a moment is not away."""
CALL_SECONDS_MAX = 5.0
WATCH_SECONDS = 0.1
"""While an answer is waited for, it looks so often at leases that run out."""
FAR_US = 3600 * SECOND_US

Post = Callable[..., None]
"""Calls a function on the worker's loop: `post(function, *arguments)`."""


class LeaseKeeper:
    """Renews all leases in one call at a third of the shortest, reads cancels, and says that the worker is there.

    `held` belongs to the worker, which adds and removes; `stop(held, reason, within_us)` and `ordered(order)` are
    posted to its loop.
    """

    def __init__(
        self,
        source: WorkSource,
        info: Callable[[], WorkerInfo],
        held: Mapping[str, HeldAttempt],
        settings: WorkerSettings,
        clock: Clock,
        chance: Chance,
        post: Post,
        stop: Callable[[HeldAttempt, StopReason, int | None], None],
        ordered: Callable[[WorkerOrder], None],
    ) -> None:
        self._source = source
        self._info = info
        self._held = held
        self._clock = clock
        self._post = post
        self._stop = stop
        self._ordered = ordered
        self._control_every_us = round(settings.control_interval * SECOND_US)
        self._beat_every_us = round(settings.heartbeat * SECOND_US)
        self._backoff = Backoff(chance)
        now_us = clock.monotonic_us()
        self._beat_at_us = now_us + self._beat_every_us
        self._beaten_us = 0
        self._control_at_us = 0
        self._not_before_us = 0
        """While the source is away: when to try again."""
        self._next_us = 0
        self._away = False
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: asyncio.Event | None = None

    # Called by the worker, from its own loop

    def look_soon(self, sent_us: int, shortest_lease_us: int) -> None:
        """Leases were added that were claimed at `sent_us`."""
        now_us = self._clock.monotonic_us()
        if self._control_at_us < now_us:
            self._control_at_us = now_us + self._control_every_us
        due_us = min(sent_us + shortest_lease_us // 3, self._control_at_us)
        if due_us < self._next_us:
            self._wake()

    def look_now(self) -> None:
        """There is a hint of a cancel or an order."""
        self._control_at_us = 0
        self._beat_at_us = min(self._beat_at_us, self._beaten_us + BEAT_EVERY_MIN_US)
        self._wake()

    def close(self) -> None:
        """End `run` soon. Callable from any thread."""
        self._closing = True
        self._wake()

    def _wake(self) -> None:
        loop, woken = self._loop, self._woken
        if loop is None or woken is None or loop.is_closed():
            return
        try:
            loop.call_soon_threadsafe(woken.set)
        except RuntimeError:
            return

    # On its own loop

    async def run(self) -> None:
        """Keep leases until closed."""
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not self._closing:
            now_us = self._clock.monotonic_us()
            self._next_us = self._due_us(now_us)
            await self._rest(max(0, self._next_us - now_us) / SECOND_US)
            if self._closing:
                return
            try:
                await self._look()
            except Exception:
                logger.exception("keeping leases failed once; it goes on")
                self._not_before_us = self._clock.monotonic_us() + SECOND_US // 2

    async def _rest(self, seconds: float) -> None:
        assert self._woken is not None
        if not seconds:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    def _due_us(self, now_us: int) -> int:
        held = [each for each in list(self._held.values()) if not each.lost]
        due_us = min(now_us + FAR_US, self._beat_at_us)
        if held:
            due_us = min(due_us, self._control_at_us, *map(_renew_at_us, held))
        due_us = max(due_us, self._not_before_us)
        return min([due_us, *(each.safe_until_us for each in self._expiring())])

    async def _look(self) -> None:
        self._stop_expiring()
        now_us = self._clock.monotonic_us()
        if now_us < self._not_before_us:
            return
        held = [each for each in list(self._held.values()) if not each.lost]
        try:
            if any(now_us >= _renew_at_us(each) for each in held):
                await self._renew(held)
            if held and now_us >= self._control_at_us:
                await self._read_control()
            if now_us >= self._beat_at_us:
                await self._beat(len(held))
        except (Unavailable, TimeoutError) as error:
            if not self._away:
                logger.warning(
                    "the source of work is away (%s); leases cannot be renewed", str(error) or type(error).__name__
                )
            self._away = True
            wait_us = round(self._backoff.next_seconds() * SECOND_US)
            self._not_before_us = self._clock.monotonic_us() + wait_us
        else:
            if self._away:
                logger.info("the source of work is back")
            self._away = False
            self._backoff.reset()

    def _stop_expiring(self) -> None:
        now_us = self._clock.monotonic_us()
        for each in self._expiring():
            if now_us >= each.safe_until_us:
                self._tell(each, StopReason.EXPIRING)

    def _expiring(self) -> list[HeldAttempt]:
        """Those whose handlers have to be told when their leases run out, and were not yet."""
        return [each for each in list(self._held.values()) if not (each.lost or each.ended or each.warned)]

    async def _watch_expiring(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self._stop_expiring()

    def _tell(self, held: HeldAttempt, reason: StopReason, within_us: int | None = None) -> None:
        held.warn()
        self._post(self._stop, held, reason, within_us)

    async def _within_lease(self, call: Awaitable[T]) -> T:
        """Wait for an answer, about as long as the next lease lasts; those that run out meanwhile are told on time."""
        now_us = self._clock.monotonic_us()
        left_us = min((each.safe_until_us - now_us for each in self._expiring()), default=FAR_US)
        seconds = min(max(left_us / SECOND_US, CALL_SECONDS_MIN), CALL_SECONDS_MAX)
        watching = asyncio.create_task(self._watch_expiring())
        try:
            async with asyncio.timeout(seconds) as limit:
                return await call
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TimeoutError(f"no answer within {seconds:.2g} s; it or this machine may be overloaded") from error
        finally:
            watching.cancel()

    async def _renew(self, held: Sequence[HeldAttempt]) -> None:
        sent_us = self._clock.monotonic_us()
        renewals = [_renewal(each, sent_us) for each in held]
        answers = await self._within_lease(self._source.renew(renewals))
        for each, renewal, answer in zip(held, renewals, answers, strict=True):
            self._note_renewed(each, answer, sent_us, renewal)

    def _note_renewed(self, held: HeldAttempt, answer: Renewed | None, sent_us: int, renewal: Renewal) -> None:
        if answer is None:
            held.renew_at_us = sent_us + held.lease_us
            if not held.ended:
                self._tell(held, StopReason.LOST)
            return
        held.renewed(sent_us, answer.lease_us)
        held.told_started = held.told_started or renewal.started
        held.told_delivered = held.told_delivered or (renewal.delivered and answer.cancel_us is not None)
        if answer.cancel_us is not None and not held.ended and held.stop_reason is None:
            self._tell(held, StopReason.CANCEL, answer.cancel_us)

    async def _read_control(self) -> None:
        self._control_at_us = self._clock.monotonic_us() + self._control_every_us
        controls: list[Control] = await self._within_lease(self._source.control(self._info().id))
        for each in controls:
            held = self._held.get(each.attempt_id)
            if held is not None and not held.ended and held.stop_reason is None:
                self._tell(held, StopReason.CANCEL, each.cancel_us)

    async def _beat(self, count: int) -> None:
        self._beaten_us = self._clock.monotonic_us()
        self._beat_at_us = self._beaten_us + self._beat_every_us
        info = self._info()
        order = await self._within_lease(self._source.heartbeat(info.id, info.capacity))
        if order is WorkerOrder.REVOKE:
            # A worker that the store has forgotten is told the same; registering again tells the two apart.
            order = await self._within_lease(self._source.register(info))
        if order is WorkerOrder.REVOKE and count:
            for each in list(self._held.values()):
                each.warn()
        self._post(self._ordered, order)


def _renewal(held: HeldAttempt, now_us: int) -> Renewal:
    started_us, delivered_us = held.started_us, held.delivered_us
    return Renewal(
        held.hold,
        started_us is not None,
        delivered_us is not None,
        0 if started_us is None else now_us - started_us,
        0 if delivered_us is None else now_us - delivered_us,
    )


def _renew_at_us(held: HeldAttempt) -> int:
    """When a renewal of this lease is due, or what became of its handler is to be told."""
    due_us = held.renew_at_us
    if held.ended:
        return due_us
    if held.started_us is not None and not held.told_started:
        due_us = min(due_us, held.started_us + TELL_AFTER_US)
    if held.delivered_us is not None and not held.told_delivered and held.stop_reason is StopReason.CANCEL:
        due_us = min(due_us, held.delivered_us + TELL_AFTER_US)
    return due_us
