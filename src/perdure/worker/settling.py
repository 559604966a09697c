"""The buffer of outcomes on their way to the source: what ends in one turn of the loop travels in one call."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from perdure.ambient import Chance, Clock
from perdure.domain.attempt import Hold
from perdure.domain.outcome import Outcome, Stopped, Succeeded, SucceededPartly
from perdure.errors import Unavailable
from perdure.store.ledger import SettleAnswer, Settled
from perdure.worker.backoff import Backoff
from perdure.worker.held import HeldAttempt
from perdure.worker.journal import Journal
from perdure.worker.reporting import Reporter
from perdure.worker.work_source import WorkSource

logger = logging.getLogger("perdure.worker")

SETTLES_AT_ONCE = 1_000
LATE_MAX = 1_000
"""Results that came too late and are still to be told; older ones are forgotten."""

Done = Callable[[list[HeldAttempt]], None]


class SettleBuffer:
    """Delivers outcomes in the order in which they came, one call at a time, again and again while the source is away
    and the leases last. Results that no lease covers any more are told once, when the source is there again: it refuses
    them, and keeps a note that they came too late. Other outcomes are dropped then.

    `done` is told which attempts need no lease any more.
    """

    def __init__(
        self, source: WorkSource, reporter: Reporter, clock: Clock, chance: Chance, done: Done, journal: Journal
    ) -> None:
        self._source = source
        self._reporter = reporter
        self._clock = clock
        self._done = done
        self._journal = journal
        self._backoff = Backoff(chance)
        self._waiting: list[tuple[HeldAttempt, Outcome]] = []
        self._late: deque[tuple[HeldAttempt, Outcome]] = deque(maxlen=LATE_MAX)
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self.settled = 0
        """Outcomes that were taken, since the start."""
        self.refused = 0
        """Outcomes that came too late or were dropped, since the start."""

    def add(self, held: HeldAttempt, outcome: Outcome) -> None:
        """Take an outcome to deliver. Never waits."""
        if held.lost:
            self._note_late(held, outcome)
        else:
            self._reporter.end_log(held)
            self._waiting.append((held, outcome))
        if not self._waiting and not self._late:
            return
        if not self._more.is_set():
            self._more.set()
            self._empty.clear()

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            await self._more.wait()
            batch, self._waiting = self._waiting[:SETTLES_AT_ONCE], self._waiting[SETTLES_AT_ONCE:]
            if batch:
                await self._deliver(batch)
            elif self._late:
                await self._tell_late()
            if not self._waiting and not self._late:
                self._more.clear()
                self._empty.set()

    async def delivered(self, timeout: float) -> bool:
        """Wait until nothing is left to deliver; false after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    async def _deliver(self, batch: list[tuple[HeldAttempt, Outcome]]) -> None:
        if self._reporter.owes(held for held, _ in batch):
            await self._reporter.flush()
        self._backoff.reset()
        while batch:
            try:
                answers = await self._source.settle(self._as_sent(batch))
            except Unavailable as error:
                batch = self._still_covered(batch, error)
                if batch:
                    await asyncio.sleep(self._backoff.next_seconds())
            except Exception:
                await self._deliver_apart(batch)
                return
            else:
                self._note(batch, answers)
                return

    def _as_sent(self, batch: list[tuple[HeldAttempt, Outcome]]) -> list[tuple[Hold, Outcome]]:
        """The outcomes with how long ago things happened, so that the source can say when."""
        now_us = self._clock.monotonic_us()
        sent: list[tuple[Hold, Outcome]] = []
        for held, outcome in batch:
            ran_us = held.ran_us(now_us)
            if type(outcome) is Succeeded:
                # What nearly all are, without the way below.
                outcome = Succeeded(outcome.result, outcome.summary, ran_us=ran_us)
            elif isinstance(outcome, Stopped):
                outcome = replace(outcome, ran_us=ran_us, told_us=held.told_us(now_us))
            elif ran_us is not None:
                outcome = replace(outcome, ran_us=ran_us)
            sent.append((held.hold, outcome))
        return sent

    async def _deliver_apart(self, batch: list[tuple[HeldAttempt, Outcome]]) -> None:
        """The source cannot take this batch: halve it, until the one at fault is alone. Its lease will run out."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._deliver(batch[:middle])
            await self._deliver(batch[middle:])
            return
        held = batch[0][0]
        logger.exception("the outcome of task %s cannot be delivered; please report it", held.hold.task_id)
        self.refused += 1
        self._done([held])

    def _note(self, batch: list[tuple[HeldAttempt, Outcome]], answers: list[Settled]) -> None:
        for (held, outcome), settled in zip(batch, answers, strict=True):
            if settled.answer is SettleAnswer.LEASE_LOST:
                self.refused += 1
                logger.warning(
                    "the outcome of task %s (%s, attempt %s) came too late: its lease was lost",
                    held.hold.task_id,
                    held.lease.kind,
                    held.lease.attempt,
                )
            else:
                self.settled += 1
                if not isinstance(outcome, Succeeded):
                    self._journal.settled(held, outcome, settled.state, settled.delay_us)
        self._done([held for held, _ in batch])

    def _still_covered(
        self, batch: list[tuple[HeldAttempt, Outcome]], error: Unavailable
    ) -> list[tuple[HeldAttempt, Outcome]]:
        now_us = self._clock.monotonic_us()
        covered = [each for each in batch if now_us < each[0].until_us]
        uncovered = [each for each in batch if now_us >= each[0].until_us]
        if uncovered:
            logger.warning(
                "%d outcomes come too late: their leases ran out while the source was away (%s)", len(uncovered), error
            )
            for held, outcome in uncovered:
                self._note_late(held, outcome)
            self._done([held for held, _ in uncovered])
        return covered

    def _note_late(self, held: HeldAttempt, outcome: Outcome) -> None:
        if isinstance(outcome, Succeeded | SucceededPartly):
            self._late.append((held, outcome))
        else:
            self.refused += 1

    async def _tell_late(self) -> None:
        """Send results that came too late, once. One whose lease was good all the same is taken."""
        told = list(self._late)
        try:
            answers = await self._source.settle(self._as_sent(told))
        except Unavailable:
            await asyncio.sleep(self._backoff.next_seconds())
            return
        except Exception:
            logger.exception("results that came too late cannot be told; please report it")
            answers = [Settled(SettleAnswer.LEASE_LOST, None)] * len(told)
        self._backoff.reset()
        for each in told:
            if each in self._late:
                self._late.remove(each)
        taken = sum(each.answer is not SettleAnswer.LEASE_LOST for each in answers)
        self.settled += taken
        self.refused += len(told) - taken
