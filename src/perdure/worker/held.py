"""An attempt as its worker holds it: the lease, how long it is good, and whether its handler shall stop."""

import asyncio
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from perdure.domain.attempt import Hold, Lease, Progress
from perdure.domain.limits import SECOND_US

if TYPE_CHECKING:
    from perdure.telemetry.tracer import Run
    from perdure.worker.attempt_log import AttemptLog
    from perdure.worker.handler import Handler

MARGIN_MIN_US = SECOND_US // 4
MARGIN_MAX_US = 3 * SECOND_US
RENEW_MIN_US = SECOND_US // 4


def margin_us(lease_us: int) -> int:
    """How long before a lease ends its handler is stopped when the lease could not be renewed."""
    return min(max(lease_us // 10, MARGIN_MIN_US), MARGIN_MAX_US)


class StopReason(StrEnum):
    """Why a handler shall stop before it has ended by itself."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    DRAIN = "drain"
    LOST = "lost"
    """The source says that the attempt is not live any more."""
    EXPIRING = "expiring"
    """The lease could not be renewed and is about to run out."""
    REVOKED = "revoked"
    """An operator put this worker out."""


LOSSES = frozenset({StopReason.LOST, StopReason.EXPIRING, StopReason.REVOKED})
"""After these nothing of the attempt counts any more: it has no outcome."""


class HeldAttempt:
    """One lease from its claim to its settlement. All times are this machine's monotonic clock, in microseconds.

    The lease counts from before the claim (or renewal) was sent, so that it ends here before it ends in the store.
    `log` is what its handler has logged, `run` its span while its handler runs and somebody traces.
    It is changed on the worker's loop, except for the lease's times, which the lease keeper's thread moves.
    """

    __slots__ = (
        "_flag",
        "_waiters",
        "answered_us",
        "begun",
        "delivered_us",
        "ended",
        "fill_lane",
        "handler",
        "hold",
        "kill_timer",
        "killed",
        "lane",
        "lease",
        "lease_us",
        "log",
        "margin_us",
        "on_stop",
        "parts_sent",
        "phases",
        "progress",
        "renew_at_us",
        "report_due",
        "run",
        "seen",
        "sent_us",
        "started_us",
        "stop_reason",
        "summary",
        "told_delivered",
        "told_started",
        "until_us",
        "warned",
    )

    def __init__(self, lease: Lease, handler: "Handler", sent_us: int, answered_us: int) -> None:
        self.lease = lease
        self.hold: Hold = lease.hold
        self.handler = handler
        self.sent_us, self.answered_us = sent_us, answered_us
        self.lease_us = lease.lease_us
        self.margin_us = margin_us(lease.lease_us)
        self.until_us = sent_us + lease.lease_us
        self.renew_at_us = sent_us + lease.lease_us // 3
        self.started_us: int | None = None
        self.told_started = False
        self.begun = False
        """A lane has taken it up."""
        self.ended = False
        """Its outcome is known, or it has none."""
        self.killed = False
        """Its handler did not stop in time and was left to itself."""
        self.stop_reason: StopReason | None = None
        self.warned = False
        """The lease keeper knows that it shall stop; the worker's loop may not have come to it yet."""
        self.seen = False
        """Its handler has asked whether it shall stop, and was told so."""
        self.kill_timer: asyncio.TimerHandle | None = None
        self.delivered_us: int | None = None
        """When the handler was told to stop."""
        self.told_delivered = False
        self.lane: asyncio.Task[None] | None = None
        self.on_stop: Callable[[], None] | None = None
        """How the handler is told to stop, while it runs."""
        self.progress: Progress | None = None
        self.phases: list[str] | None = None
        self.summary: str | None = None
        """What its handler said that came of it."""
        self.log: AttemptLog | None = None
        self.report_due = False
        self.run: Run | None = None
        self.parts_sent = 0
        self._flag: threading.Event | None = None
        self._waiters: list[asyncio.Future[None]] | None = None

    @property
    def lost(self) -> bool:
        """Whether nothing of it counts any more."""
        return self.stop_reason is not None and self.stop_reason in LOSSES

    @property
    def safe_until_us(self) -> int:
        """When its handler has to be stopped unless the lease is renewed before."""
        return self.until_us - self.margin_us

    def ran_us(self, now_us: int) -> int | None:
        """How long ago its handler began, where the source does not know yet."""
        return None if self.started_us is None or self.told_started else now_us - self.started_us

    def told_us(self, now_us: int) -> int | None:
        """How long ago its handler was told of a cancel, where the source does not know yet."""
        if self.delivered_us is None or self.told_delivered or self.stop_reason is not StopReason.CANCEL:
            return None
        return now_us - self.delivered_us

    def renewed(self, sent_us: int, lease_us: int) -> None:
        """The lease was confirmed by an answer to a request that was sent at `sent_us`. While a cancel runs and close
        to the deadline a store grants less than the whole lease.
        """
        self.until_us = max(self.until_us, sent_us + lease_us)
        self.renew_at_us = sent_us + max(lease_us // 3, RENEW_MIN_US)

    def ask_to_stop(self, reason: StopReason) -> bool:
        """Note why it shall stop. The first reason stands, except that a loss overrides. False: nothing new."""
        if self.ended or self.stop_reason is reason:
            return False
        if self.stop_reason is not None and (self.lost or reason not in LOSSES):
            return False
        first = self.stop_reason is None
        self.stop_reason = reason
        if first:
            self._tell_waiters()
        return first

    def cancel_lane(self) -> None:
        """Raise `CancelledError` in the handler, where it waits."""
        if self.lane is not None:
            self.lane.cancel()

    def warn(self) -> None:
        """Let a handler in a thread see at once that it shall stop. Callable from any thread."""
        self.warned = True
        if self._flag is not None:
            self._flag.set()

    def _tell_waiters(self) -> None:
        if self._flag is not None:
            self._flag.set()
        for waiter in self._waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def stop_flag(self) -> threading.Event:
        """A flag for threads that is set once the handler shall stop."""
        if self._flag is None:
            self._flag = threading.Event()
            if self.stop_reason is not None or self.warned:
                self._flag.set()
        return self._flag

    async def stop_asked(self) -> None:
        """Wait, on the worker's loop, until the handler shall stop."""
        if self.stop_reason is not None:
            return
        if self._waiters is None:
            self._waiters = []
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)
