"""What a handler can know of its task without waiting."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from perdure.ambient import Clock
from perdure.domain.attempt import PHASES, Progress
from perdure.domain.limits import SECOND_US, SUMMARY_MAX_BYTES
from perdure.domain.outcome import Succeeded
from perdure.errors import Invalid, Misuse
from perdure.store.ledger import ParentResult
from perdure.worker.capturing import TaskLogger
from perdure.worker.held import HeldAttempt
from perdure.worker.payload import BadPayload
from perdure.worker.reporting import Reporter, lease_lost
from perdure.worker.results import BadResult, decode_result, encode_result
from perdure.worker.scheduled import scheduled_by
from perdure.worker.tracing import trace_of
from perdure.worker.work_source import WorkSource

Inputs = Mapping[str, ParentResult] | BadPayload
"""How the parents ended, by name, or why that cannot be told."""


class AttemptKnowledge:
    """What both contexts can tell without waiting."""

    __slots__ = ("_clock", "_held", "_inputs", "_logger", "_parents", "_reporter", "_source", "settled")

    def __init__(
        self,
        held: HeldAttempt,
        source: WorkSource,
        reporter: Reporter,
        clock: Clock,
        inputs: Inputs,
    ) -> None:
        self._held = held
        self._source = source
        self._reporter = reporter
        self._clock = clock
        self._logger: logging.LoggerAdapter[logging.Logger] | None = None
        self._inputs = inputs
        self._parents: dict[str, Any] | None = None
        self.settled: Succeeded | None = None
        """What `settle_within` made the result, if the transaction commits."""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self._held.hold.task_id

    @property
    def attempt_id(self) -> str:
        """The id of this claim of the task."""
        return self._held.hold.attempt_id

    @property
    def organization(self) -> str:
        """The organization that owns the task."""
        return self._held.hold.organization

    @property
    def job_id(self) -> str | None:
        """The job that the task belongs to."""
        return self._held.lease.job_id

    @property
    def name(self) -> str | None:
        """The task's name within its job."""
        return self._held.lease.name

    @property
    def kind(self) -> str:
        """The kind as it was submitted; an older one where an upcaster translated the payload."""
        return self._held.lease.kind

    @property
    def queue(self) -> str:
        """The line of work that the task came from."""
        return self._held.lease.queue

    @property
    def attempt(self) -> int:
        """1 for the first; more after failures of the handler itself. Lost workers do not count."""
        return self._held.lease.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts the task has in all."""
        return self._held.lease.max_attempts

    @property
    def generation(self) -> int:
        """1, and one more after each redrive."""
        return self._held.lease.generation

    @property
    def fence(self) -> int:
        """A number that only grows for this task: have other systems refuse writes that carry a smaller one."""
        return self._held.lease.fence

    @property
    def initiator(self) -> str:
        """For whom the task was submitted."""
        return self._held.lease.initiator

    @property
    def idempotency_key(self) -> str:
        """The same for all attempts of one generation: give it to other systems to have effects once."""
        return f"{self._held.hold.task_id}:{self._held.lease.generation}"

    @property
    def trace(self) -> str | None:
        """The W3C `traceparent` with which the task was submitted, to carry on to whatever the handler calls."""
        return trace_of(self._held.lease.options)

    @property
    def schedule(self) -> str | None:
        """The schedule that made the task, if one did."""
        scheduled = scheduled_by(self._held.lease.options)
        return None if scheduled is None else scheduled.name

    @property
    def instant(self) -> datetime | None:
        """The instant of the schedule for which the task was made, in UTC: what a daily report is of, however late it
        is, and in a backfill too.
        """
        scheduled = scheduled_by(self._held.lease.options)
        return None if scheduled is None else scheduled.instant

    @property
    def parents(self) -> Mapping[str, Any]:
        """The results of the tasks that this one depended on, by name; only of those that have one.

        Where they are more than a handler may be given, looking at them fails the task for good.
        """
        if self._parents is None:
            ends = self._ends()
            self._parents = {name: decode_result(each.result) for name, each in ends.items() if each.result is not None}
        return self._parents

    @property
    def parent_states(self) -> Mapping[str, str]:
        """How the tasks that this one depended on ended, by name."""
        return {name: str(each.state) for name, each in self._ends().items()}

    def _ends(self) -> Mapping[str, ParentResult]:
        if isinstance(self._inputs, BadPayload):
            raise self._inputs
        return self._inputs

    @property
    def deadline(self) -> float:
        """Seconds left until the execution deadline, by this machine's clock; 0 when it has passed."""
        left_us = self._held.answered_us + self._held.lease.deadline_us - self._clock.monotonic_us()
        return max(0, left_us) / SECOND_US

    @property
    def lease_seconds(self) -> float:
        """Seconds for which the lease is good without another renewal. The worker renews it all the time."""
        return max(0, self._held.until_us - self._clock.monotonic_us()) / SECOND_US

    @property
    def cancelled(self) -> bool:
        """Whether the handler shall stop: a cancel, a timeout, a lost lease, or the worker's end.

        What a handler returns after it has seen this is not taken for its result: the task is handed back where the
        worker ends, and runs again.
        """
        asked = self._held.stop_reason is not None or self._held.warned
        self._held.seen = self._held.seen or asked
        return asked

    @property
    def stop_reason(self) -> str | None:
        """Why it shall stop: cancel, timeout, deadline, drain, lost, expiring or revoked."""
        if self._held.stop_reason is None:
            return None
        self._held.seen = True
        return str(self._held.stop_reason)

    @property
    def checkpointed(self) -> Any:
        """What `checkpoint` stored last in this generation, by any attempt; `None` when nothing was."""
        text = self._held.lease.checkpoint
        return None if text is None else msgspec.json.decode(text)

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A logger named after the kind whose records carry task_id, attempt_id, kind and attempt.

        Its lines are kept with the task, as far as `Settings.task_logs` says.
        """
        if self._logger is None:
            fields = {
                "task_id": self.task_id,
                "attempt_id": self.attempt_id,
                "kind": self.kind,
                "attempt": self.attempt,
            }
            logger = logging.getLogger(f"perdure.task.{self.kind}")
            self._logger = TaskLogger(logger, fields, self._reporter.capture(self._held))
        return self._logger

    def progress(
        self, done: int, total: int | None = None, *, succeeded: int | None = None, failed: int | None = None
    ) -> None:
        """Tell how far it is. Never waits; what is told within 200 ms travels as one, the latest counts."""
        for field, value in (("done", done), ("total", total), ("succeeded", succeeded), ("failed", failed)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise Invalid(f"{field} must be a whole number from 0 on, not {value!r}", field=field)
        self._reporter.note_progress(self._held, Progress(done, total, succeeded, failed))

    def phase(self, name: str) -> None:
        """Tell which phase it is in: planning, validating, executing or finalizing. Never waits."""
        if name not in PHASES:
            raise Invalid(f"a phase is one of {', '.join(PHASES)}, not {name!r}", field="phase")
        self._reporter.note_phase(self._held, name)

    def summarize(self, text: str) -> None:
        """Say in at most 1 KiB what came of it: the task keeps the last such text beside the result, for people."""
        if not isinstance(text, str) or len(text.encode("utf-8", "replace")) > SUMMARY_MAX_BYTES:
            raise Invalid(f"a summary is a text of at most {SUMMARY_MAX_BYTES} bytes", field="summary")
        self._held.summary = text

    def settle_within(self, connection: Any, value: Any = None, summary: str | None = None) -> None:
        """Make `value` the result inside the open transaction of `connection`, a connection to the store's own
        database: it counts exactly if that transaction commits. Commit, then return.

        Raises `LeaseLost`: roll back then. Raises `Misuse` where the store cannot do this.
        """
        settle, result = self._settle_by("settle_within"), self._success(value, summary)
        settle(connection, self._held.hold, msgspec.Raw(result.result.data), result.summary)
        self.settled = result

    def _settle_by(self, name: str) -> Callable[..., Any]:
        settle: Callable[..., Any] | None = getattr(self._source, name, None)
        if settle is None:
            raise Misuse("this worker does not work on the store's own database: settle by returning the value")
        if self._held.lost:
            raise lease_lost(self._held)
        return settle

    def _success(self, value: Any, summary: str | None) -> Succeeded:
        try:
            body = encode_result(value)
        except BadResult as error:
            raise Invalid(str(error), field="value") from error
        return Succeeded(body, summary or self._held.summary)
