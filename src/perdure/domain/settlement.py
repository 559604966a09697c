"""What is written when an attempt ends. Only the constructors here name a state; nobody passes one in."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from perdure.domain import limits
from perdure.domain.outcome import (
    Failed,
    Failure,
    GaveUp,
    HandedBack,
    NotStarted,
    Outcome,
    Snoozed,
    Stopped,
    Succeeded,
    SucceededPartly,
)
from perdure.domain.retry import Retry
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.domain.task import Body, OnLoss
from perdure.domain.transitions import Event

NOT_STOPPED = Failure("NotStopped", "the handler did not stop when it was told to, and was given up by its worker")
"""The error of a cancelled attempt whose handler had to be made to stop."""


class Charge(StrEnum):
    """Which budget or counter the end of an attempt spends."""

    NOTHING = "nothing"
    ATTEMPT = "attempt"
    LOSS = "loss"
    LOSS_AND_ATTEMPT = "loss_and_attempt"
    SNOOZE = "snooze"
    HAND_BACK = "hand_back"


class Receipt(NamedTuple):
    """Proof that an attempt's effects were committed together with its result."""

    attempt_id: str
    partly: bool
    result: Body
    summary: str | None


class AttemptFacts(NamedTuple):
    """What a decision about a failing or lost attempt needs; read once, by the store's clock."""

    now_us: int
    state: TaskState
    failures: int
    losses: int
    snoozes: int
    hand_backs: int
    max_attempts: int
    max_losses: int
    on_loss: OnLoss
    deadline_us: int
    """The instant of the execution deadline."""
    expires_us: int | None
    """The instant of the TTL; `None` when there is none any more."""
    dead_letters: bool
    receipt: Receipt | None
    retry: str | None = None
    """The task's retry policy as JSON; `None` for the default of `Retry`."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """All that is written when an attempt ends. Make one with the constructors below."""

    event: Event
    state: TaskState
    attempt: AttemptState
    reason: Reason
    charge: Charge = Charge.NOTHING
    delay_us: int = 0
    """How long the task then waits, from the settling transaction's time."""
    front: bool = False
    """Queued again before everything that was never leased."""
    clears_ttl: bool = False
    result: Body | None = None
    error: Failure | None = None
    summary: str | None = None

    @classmethod
    def succeeded(cls, result: Body, summary: str | None = None) -> "Settlement":
        """The handler returned."""
        return cls(
            Event.SUCCEED,
            TaskState.SUCCEEDED,
            AttemptState.SUCCEEDED,
            Reason.OK,
            result=result,
            summary=summary,
        )

    @classmethod
    def succeeded_partly(cls, result: Body, summary: str | None = None) -> "Settlement":
        """The handler returned and some of its items failed."""
        return cls(
            Event.SUCCEED_PARTLY,
            TaskState.PARTIALLY_SUCCEEDED,
            AttemptState.SUCCEEDED,
            Reason.ITEMS_FAILED,
            result=result,
            summary=summary,
        )

    @classmethod
    def retry(cls, error: Failure, delay_us: int, reason: Reason = Reason.ERROR) -> "Settlement":
        """The handler failed and has budget left."""
        return cls(
            Event.RETRY,
            TaskState.RETRYING,
            AttemptState.FAILED,
            reason,
            Charge.ATTEMPT,
            delay_us=delay_us,
            error=error,
        )

    @classmethod
    def failed(cls, error: Failure, reason: Reason, dead_letters: bool) -> "Settlement":
        """The task ends by its handler's failure, or by its deadline."""
        state = TaskState.DEAD_LETTERED if dead_letters else TaskState.FAILED
        return cls(Event.FAIL, state, AttemptState.FAILED, reason, Charge.ATTEMPT, error=error)

    @classmethod
    def gave_up(cls, why: str) -> "Settlement":
        """The handler returned `Cancel`."""
        return cls(Event.GIVE_UP, TaskState.CANCELLED, AttemptState.CANCELLED, Reason.USER, summary=why)

    @classmethod
    def snoozed(cls, delay_us: int) -> "Settlement":
        """The handler asked to be called again later."""
        return cls(
            Event.SNOOZE,
            TaskState.PENDING,
            AttemptState.SNOOZED,
            Reason.USER,
            Charge.SNOOZE,
            delay_us=delay_us,
            clears_ttl=True,
        )

    @classmethod
    def handed_back(cls) -> "Settlement":
        """The worker shut down before the handler ended, or had no slot for it in time."""
        return cls(
            Event.HAND_BACK,
            TaskState.QUEUED,
            AttemptState.RELEASED,
            Reason.HANDED_BACK,
            Charge.HAND_BACK,
            front=True,
            clears_ttl=True,
        )

    @classmethod
    def expired_unstarted(cls) -> "Settlement":
        """The TTL passed between the claim and the handler's start."""
        return cls(Event.EXPIRE, TaskState.EXPIRED, AttemptState.RELEASED, Reason.TTL)

    @classmethod
    def acknowledged(cls, killed: bool = False) -> "Settlement":
        """The holder of a cancelled task has stopped (`killed`: its handler had to be made to). The store keeps the
        reason of the request.
        """
        error = NOT_STOPPED if killed else None
        return cls(Event.ACKNOWLEDGE, TaskState.CANCELLED, AttemptState.CANCELLED, Reason.USER, error=error)

    @classmethod
    def cancel_overdue(cls) -> "Settlement":
        """The holder of a cancelled task did not answer in time."""
        return cls(Event.CANCEL_DEADLINE, TaskState.CANCELLED, AttemptState.CANCELLED, Reason.USER)

    @classmethod
    def cancelled_by_loss(cls) -> "Settlement":
        """The holder of a cancelled task lost its lease."""
        return cls(Event.LOSE, TaskState.CANCELLED, AttemptState.CANCELLED, Reason.USER)

    @classmethod
    def by_receipt(cls, receipt: Receipt, event: Event) -> "Settlement":
        """The attempt is gone, its effects are committed: the receipt is the result."""
        state = TaskState.PARTIALLY_SUCCEEDED if receipt.partly else TaskState.SUCCEEDED
        reason = Reason.ITEMS_FAILED if receipt.partly else Reason.OK
        if event == Event.SUCCEED and receipt.partly:
            event = Event.SUCCEED_PARTLY
        return cls(event, state, AttemptState.SUCCEEDED, reason, result=receipt.result, summary=receipt.summary)

    @classmethod
    def lost_and_queued(cls, charge: Charge) -> "Settlement":
        """The lease ran out; the task is claimable again at once."""
        return cls(
            Event.LOSE,
            TaskState.QUEUED,
            AttemptState.LOST,
            Reason.WORKER_LOST,
            charge,
            front=True,
            clears_ttl=True,
        )

    @classmethod
    def lost_and_retrying(cls, charge: Charge, delay_us: int) -> "Settlement":
        """The lease ran out again; the task waits before it may take another worker down."""
        return cls(
            Event.LOSE,
            TaskState.RETRYING,
            AttemptState.LOST,
            Reason.WORKER_LOST,
            charge,
            delay_us=delay_us,
            clears_ttl=True,
        )

    @classmethod
    def lost_for_good(cls, charge: Charge, reason: Reason, dead_letters: bool) -> "Settlement":
        """The lease ran out and no budget or time is left."""
        state = TaskState.DEAD_LETTERED if dead_letters else TaskState.FAILED
        error = Failure("WorkerLost", "the lease ran out before a result was reported")
        return cls(Event.LOSE, state, AttemptState.LOST, reason, charge, error=error)

    @classmethod
    def revoked_and_queued(cls) -> "Settlement":
        """An operator put the worker out; the task is claimable again, at no cost."""
        return cls(
            Event.REVOKE,
            TaskState.QUEUED,
            AttemptState.CANCELLED,
            Reason.REVOKED,
            front=True,
            clears_ttl=True,
        )


_FAILURE_REASONS = {
    "error": Reason.ERROR,
    "timeout": Reason.TIMEOUT,
    "bad_payload": Reason.BAD_PAYLOAD,
    "bad_result": Reason.BAD_RESULT,
}


def needs_facts(outcome: Outcome) -> bool:
    """Whether the decision has to read the task first. Success reads nothing."""
    return not isinstance(outcome, Succeeded | SucceededPartly | GaveUp | Stopped | NotStarted)


def settle_good(outcome: Outcome) -> Settlement:
    """The settlement of an outcome that needs no facts."""
    match outcome:
        case Succeeded(result, summary):
            return Settlement.succeeded(result, summary)
        case SucceededPartly(result, summary):
            return Settlement.succeeded_partly(result, summary)
        case GaveUp(reason):
            return Settlement.gave_up(reason)
        case NotStarted():
            return Settlement.expired_unstarted()
        case Stopped(killed):
            return Settlement.acknowledged(killed)
        case _:
            raise TypeError(f"{type(outcome).__name__} needs facts")


def settle(outcome: Outcome, facts: AttemptFacts, retry: Retry, spread: float) -> Settlement:
    """The settlement of `outcome`. `spread` in [-1, 1] is the caller's chance, for the jitter.

    The order is fixed: cancel requested, receipt, deadline, budget.
    """
    if not needs_facts(outcome) and facts.state != TaskState.CANCELLING:
        return settle_good(outcome)
    if facts.receipt is not None:
        event = Event.ACKNOWLEDGE if facts.state == TaskState.CANCELLING else Event.SUCCEED
        return Settlement.by_receipt(facts.receipt, event)
    if facts.state == TaskState.CANCELLING:
        return Settlement.acknowledged()
    match outcome:
        case Failed():
            return _settle_failure(outcome, facts, retry, spread)
        case Snoozed(delay_us):
            return _settle_snooze(delay_us, facts)
        case HandedBack():
            return _settle_hand_back(facts)
        case _:
            return settle_good(outcome)


def _settle_failure(outcome: Failed, facts: AttemptFacts, retry: Retry, spread: float) -> Settlement:
    reason = _FAILURE_REASONS[outcome.reason]
    if facts.now_us >= facts.deadline_us:
        return Settlement.failed(outcome.error, Reason.DEADLINE, facts.dead_letters)
    if outcome.permanent:
        final = Reason.PERMANENT if reason == Reason.ERROR else reason
        return Settlement.failed(outcome.error, final, facts.dead_letters)
    failures = facts.failures + 1
    if failures >= facts.max_attempts:
        final = Reason.EXHAUSTED if reason == Reason.ERROR else reason
        return Settlement.failed(outcome.error, final, facts.dead_letters)
    delay_us = outcome.retry_after_us
    if delay_us is None:
        delay_us = retry.delay_us(failures, spread)
    due_us = facts.now_us + delay_us
    if due_us >= facts.deadline_us:
        return Settlement.failed(outcome.error, Reason.DEADLINE, facts.dead_letters)
    if facts.expires_us is not None and due_us >= facts.expires_us:
        return Settlement.failed(outcome.error, Reason.TTL, facts.dead_letters)
    return Settlement.retry(outcome.error, delay_us, reason)


def _settle_snooze(delay_us: int, facts: AttemptFacts) -> Settlement:
    if facts.snoozes >= limits.SNOOZES_MAX:
        error = Failure("TooManySnoozes", f"the handler snoozed {limits.SNOOZES_MAX} times")
        return Settlement.failed(error, Reason.PERMANENT, facts.dead_letters)
    if facts.now_us + delay_us >= facts.deadline_us:
        error = Failure("DeadlinePassed", "the handler snoozed past the deadline of its execution limit")
        return Settlement.failed(error, Reason.DEADLINE, facts.dead_letters)
    return Settlement.snoozed(delay_us)


def _settle_hand_back(facts: AttemptFacts) -> Settlement:
    if facts.now_us >= facts.deadline_us:
        error = Failure("DeadlinePassed", "the deadline of its execution limit passed while its worker shut down")
        return Settlement.failed(error, Reason.DEADLINE, facts.dead_letters)
    if facts.hand_backs >= limits.HAND_BACKS_MAX:
        error = Failure("TooManyHandBacks", f"workers handed it back {limits.HAND_BACKS_MAX} times")
        return Settlement.failed(error, Reason.PERMANENT, facts.dead_letters)
    return Settlement.handed_back()


def settle_loss(facts: AttemptFacts, retry: Retry, spread: float, charged: bool) -> Settlement:
    """The settlement of an attempt whose lease ran out. `charged` is false while the store's time is in doubt.

    The order is fixed: receipt, cancel requested, deadline, `on_loss` and its budget.
    """
    if facts.receipt is not None:
        return Settlement.by_receipt(facts.receipt, Event.LOSE)
    if facts.state == TaskState.CANCELLING:
        return Settlement.cancelled_by_loss()
    counts = facts.on_loss == "count"
    charge = Charge.NOTHING
    if charged:
        charge = Charge.LOSS_AND_ATTEMPT if counts else Charge.LOSS
    if facts.now_us >= facts.deadline_us:
        return Settlement.lost_for_good(charge, Reason.DEADLINE, facts.dead_letters)
    if facts.on_loss == "fail":
        return Settlement.lost_for_good(charge, Reason.WORKER_LOST, facts.dead_letters)
    if not charged:
        return Settlement.lost_and_queued(charge)
    losses = facts.losses + 1
    if losses >= facts.max_losses or (counts and facts.failures + 1 >= facts.max_attempts):
        return Settlement.lost_for_good(charge, Reason.WORKER_LOST, facts.dead_letters)
    if losses == 1:
        return Settlement.lost_and_queued(charge)
    delay_us = retry.delay_us(losses - 1, spread)
    if facts.now_us + delay_us >= facts.deadline_us:
        return Settlement.lost_for_good(charge, Reason.DEADLINE, facts.dead_letters)
    return Settlement.lost_and_retrying(charge, delay_us)


def settle_overdue(facts: AttemptFacts, timed_out: bool, retry: Retry, spread: float) -> Settlement:
    """The settlement of an attempt that still renews past its deadline, or past its timeout and grace."""
    if facts.state == TaskState.CANCELLING:
        return settle_cancel_overdue(facts)
    if facts.receipt is not None:
        return Settlement.by_receipt(facts.receipt, Event.SUCCEED)
    if facts.now_us >= facts.deadline_us or not timed_out:
        error = Failure("DeadlinePassed", "the deadline of its execution limit passed while the handler ran")
        return Settlement.failed(error, Reason.DEADLINE, facts.dead_letters)
    error = Failure("TimedOut", "the handler ran past its timeout and its worker did not stop it")
    return _settle_failure(Failed(error, reason="timeout"), facts, retry, spread)


def settle_cancel_overdue(facts: AttemptFacts) -> Settlement:
    """The settlement of a cancelled task whose holder did not answer by the cancel deadline."""
    if facts.receipt is not None:
        return Settlement.by_receipt(facts.receipt, Event.CANCEL_DEADLINE)
    return Settlement.cancel_overdue()


def settle_revoked(facts: AttemptFacts) -> Settlement:
    """The settlement of an attempt whose worker was revoked with its tasks to be run elsewhere."""
    if facts.receipt is not None:
        event = Event.LOSE if facts.state == TaskState.CANCELLING else Event.SUCCEED
        return Settlement.by_receipt(facts.receipt, event)
    if facts.state == TaskState.CANCELLING:
        return Settlement.cancelled_by_loss()
    return Settlement.revoked_and_queued()
