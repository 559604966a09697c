"""What handlers tell while they run, gathered: one call for all of them, progress at most every 200 ms."""

import asyncio
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from perdure.ambient import Clock
from perdure.domain.attempt import LogLine, Part, Progress, Report
from perdure.errors import LeaseLost, PerdureError, Unavailable
from perdure.store.ledger import Reported
from perdure.worker.attempt_log import AttemptLog, Noted
from perdure.worker.capturing import Capture, least_level, watch_records
from perdure.worker.held import HeldAttempt, StopReason
from perdure.worker.work_source import WorkSource

logger = logging.getLogger("perdure.worker")

REPORTS_AT_ONCE = 500
RETRY_MIN_SECONDS = 0.1
RETRY_MAX_SECONDS = 2.0

Stop = Callable[[HeldAttempt, StopReason, int | None], None]
"""(attempt, why, microseconds in which a cancel must have been answered)"""


class _Sending(NamedTuple):
    held: HeldAttempt
    report: Report
    answer: "asyncio.Future[Reported] | None"
    """Set for parts and checkpoints, which are waited for."""
    lines: Sequence[Noted] = ()
    """Of the attempt's log."""


class Reporter:
    """Sends reports in their order, one call at a time. Everything belongs to the worker's loop, except for what says
    otherwise.

    Of progress the latest counts. Lines of logs are kept within the bounds of `AttemptLog`, from level `logs` on. Parts
    and checkpoints are sent again while the source is away and the lease lasts.
    """

    def __init__(self, source: WorkSource, clock: Clock, interval: float, stop: Stop, logs: str = "off") -> None:
        self._source = source
        self._clock = clock
        self._interval = interval
        self._stop = stop
        self._log_least = least_level(logs)
        self._opening_log = threading.Lock()
        if self._log_least is not None:
            watch_records()
        self._loop = asyncio.get_running_loop()
        self._due: dict[str, HeldAttempt] = {}
        self._sendings: list[_Sending] = []
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def owes(self, attempts: Iterable[HeldAttempt]) -> bool:
        """Whether something that one of these attempts told is not sent yet, or still on its way."""
        if not self._due and not self._sendings:
            return False
        unsent = {each.held.hold.attempt_id for each in self._sendings} | self._due.keys()
        return any(each.hold.attempt_id in unsent for each in attempts)

    def note_progress(self, held: HeldAttempt, progress: Progress) -> None:
        """Replace the attempt's counters. Never waits; callable from any thread."""
        held.progress = progress
        self._touch(held)

    def note_phase(self, held: HeldAttempt, phase: str) -> None:
        """Add a phase. Never waits; callable from any thread."""
        if not self._on_loop():
            self._loop.call_soon_threadsafe(self.note_phase, held, phase)
            return
        if held.phases is None:
            held.phases = []
        held.phases.append(phase)
        self._touch(held)

    def capture(self, held: HeldAttempt) -> Capture | None:
        """Where the lines go that the attempt's handler logs; `None` when none are kept."""
        if self._log_least is None:
            return None
        return Capture(functools.partial(self._note_line, held), self._log_least)

    def _note_line(self, held: HeldAttempt, level: str, text: str) -> None:
        """Add a line to the attempt's log. Never waits; callable from any thread."""
        if held.log is None:
            with self._opening_log:
                held.log = held.log or AttemptLog()
        if held.log.add(level, text, self._clock.monotonic_us()):
            self._touch(held)

    def end_log(self, held: HeldAttempt) -> None:
        """The handler is over: the end of its log may be sent, and nothing is added to it."""
        if held.log is not None and held.log.end():
            self._touch(held)

    def _touch(self, held: HeldAttempt) -> None:
        if held.report_due:
            return
        held.report_due = True
        if self._on_loop():
            self._note_due(held)
        else:
            self._loop.call_soon_threadsafe(self._note_due, held)

    def _on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _note_due(self, held: HeldAttempt) -> None:
        self._due[held.hold.attempt_id] = held
        if self._timer is None and self._task is None:
            self._timer = self._loop.call_later(self._interval, self._begin)

    async def send_part(self, held: HeldAttempt, part: Part) -> Reported:
        """Store a part and wait for its acknowledgement. Raises `LeaseLost`, `Conflict`, `TooLarge`."""
        return await self._send(held, Report(held.hold, part=part, ran_us=self._ran_us(held)))

    async def send_checkpoint(self, held: HeldAttempt, checkpoint: str) -> Reported:
        """Store a checkpoint and wait for its acknowledgement. Raises `LeaseLost`."""
        return await self._send(held, Report(held.hold, checkpoint=checkpoint, ran_us=self._ran_us(held)))

    async def _send(self, held: HeldAttempt, report: Report) -> Reported:
        if held.lost:
            raise lease_lost(held)
        answer: asyncio.Future[Reported] = self._loop.create_future()
        self._sendings.append(_Sending(held, report, answer))
        self._begin()
        return await answer

    def forget(self, held: HeldAttempt) -> None:
        """The attempt is over and lost: what it still had to tell is dropped."""
        self._due.pop(held.hold.attempt_id, None)

    async def flush(self) -> None:
        """Send what is waiting now; return when it is sent, or when the source is away."""
        if self._due or self._sendings:
            self._begin()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=RETRY_MAX_SECONDS)

    def close(self) -> None:
        """Send nothing more; who waits for an acknowledgement learns that the lease is lost."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        for each in self._sendings:
            if each.answer is not None and not each.answer.done():
                each.answer.set_exception(lease_lost(each.held))
        self._sendings.clear()
        self._due.clear()

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = self._loop.create_task(self._send_all(), name="perdure-reports")
            self._task.add_done_callback(self._sent_all)

    def _sent_all(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            logger.error("reports could not be sent", exc_info=task.exception())
        if self._due or self._sendings:
            delay = 0.0 if self._sendings else self._interval
            self._timer = self._loop.call_later(delay, self._begin)

    async def _send_all(self) -> None:
        wait = RETRY_MIN_SECONDS
        while self._take_due() or self._sendings:
            batch = self._sendings[:REPORTS_AT_ONCE]
            try:
                answers = await self._source.report(self._as_sent(batch))
            except Unavailable:
                self._drop_uncovered()
                await asyncio.sleep(wait)
                wait = min(wait * 2, RETRY_MAX_SECONDS)
                continue
            except PerdureError as error:
                answers = [error] * len(batch)
            except Exception as error:
                logger.exception("reports could not be sent; please report it")
                answers = [PerdureError(f"the report could not be sent: {error!r}")] * len(batch)
            del self._sendings[: len(batch)]
            for sending, answer in zip(batch, answers, strict=True):
                self._note_answer(sending, answer)

    def _as_sent(self, batch: Iterable[_Sending]) -> list[Report]:
        """The reports, with how long ago the lines of logs were logged."""
        now_us = self._clock.monotonic_us()
        return [each.report._replace(logs=_aged(each.lines, now_us)) if each.lines else each.report for each in batch]

    def _ran_us(self, held: HeldAttempt) -> int:
        return held.ran_us(self._clock.monotonic_us()) or 0

    def _take_due(self) -> bool:
        """Turn progress, phases and logs into reports. False: there were none."""
        if not self._due:
            return False
        for held in self._due.values():
            held.report_due = False
            progress, held.progress = held.progress, None
            phases, held.phases = held.phases, None
            lines = held.log.take() if held.log is not None else ()
            if held.lost:
                continue
            ran_us = self._ran_us(held)
            for phase in (phases or ())[:-1]:
                self._sendings.append(_Sending(held, Report(held.hold, phase=phase, ran_us=ran_us), None))
            last = phases[-1] if phases else None
            if progress is not None or last is not None:
                report = Report(held.hold, progress=progress, phase=last, ran_us=ran_us)
                self._sendings.append(_Sending(held, report, None))
            if lines:
                # Apart from the others, which are refused once a cancel is requested.
                self._sendings.append(_Sending(held, Report(held.hold, ran_us=ran_us), None, lines))
        self._due.clear()
        return bool(self._sendings)

    def _note_answer(self, sending: _Sending, answer: Reported | PerdureError) -> None:
        held, waiting = sending.held, sending.answer
        if isinstance(answer, Reported):
            held.told_started = True
            if answer.cancel_us is not None:
                self._stop(held, StopReason.CANCEL, answer.cancel_us)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
            return
        if waiting is not None and not waiting.done():
            waiting.set_exception(answer)
        if isinstance(answer, LeaseLost):
            self.stop_lost(held)

    def stop_lost(self, held: HeldAttempt) -> None:
        """The source says that the attempt is not live. Its handler is stopped one turn later, so that it sees the
        error and not only that it is cancelled.
        """
        held.warn()
        self._loop.call_soon(self._stop, held, StopReason.LOST, None)

    def _drop_uncovered(self) -> None:
        """While the source is away: give up what no lease covers any more."""
        now_us = self._clock.monotonic_us()
        kept: list[_Sending] = []
        for each in self._sendings:
            if now_us < each.held.until_us and not each.held.lost:
                kept.append(each)
            elif each.answer is not None and not each.answer.done():
                each.answer.set_exception(lease_lost(each.held))
        self._sendings = kept


def _aged(lines: Sequence[Noted], now_us: int) -> tuple[LogLine, ...]:
    return tuple(
        LogLine(each.sequence, each.level, each.message, max(0, now_us - each.at_us), each.dropped) for each in lines
    )


def lease_lost(held: HeldAttempt) -> LeaseLost:
    """The error for a handler that writes without a lease."""
    return LeaseLost(
        f"attempt {held.lease.attempt} of task {held.hold.task_id} does not hold its lease any more: stop; nothing "
        "that it writes is kept",
        task_id=held.hold.task_id,
        attempt_id=held.hold.attempt_id,
    )
