"""From what a handler did to its outcome: value, verdict, error, or stop."""

import asyncio
from typing import Any

from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import (
    Failed,
    GaveUp,
    HandedBack,
    Outcome,
    Snoozed,
    Stopped,
    Succeeded,
    SucceededPartly,
)
from perdure.errors import LeaseLost
from perdure.worker.failures import failure, failure_of
from perdure.worker.held import HeldAttempt, StopReason
from perdure.worker.payload import BadPayload
from perdure.worker.results import BadResult, encode_result
from perdure.worker.verdicts import Cancel, Fail, Partly, RetryAfter, Snooze, Verdict

FINAL_STOPS = frozenset(set(StopReason) - {StopReason.DRAIN})
"""After these it does not matter what the handler still returns."""


def outcome_of_value(held: HeldAttempt, value: Any) -> Outcome | None:
    """The outcome of a handler that returned. One that finished while its worker drained has finished, unless it looked
    whether it shall stop and saw that it shall. One that could not know that its lease was lost has a late result.
    """
    if held.stop_reason is not None and _stopped_short(held, value):
        return outcome_of_stop(held)
    if isinstance(value, Verdict):
        return _outcome_of_verdict(value, held)
    try:
        return Succeeded(encode_result(value), held.summary)
    except BadResult as error:
        return bad_result(error)


def _stopped_short(held: HeldAttempt, value: Any) -> bool:
    if held.lost:
        return held.seen or held.handler.is_async or isinstance(value, Verdict)
    return held.stop_reason in FINAL_STOPS or (held.seen and not isinstance(value, Verdict))


def outcome_of_error(held: HeldAttempt, error: BaseException) -> Outcome | None:
    """The outcome of a handler that raised. After it was told to stop, whatever it raises is its stopping."""
    if held.stop_reason is not None and (held.stop_reason in FINAL_STOPS or not isinstance(error, Verdict)):
        return outcome_of_stop(held)
    if isinstance(error, Verdict):
        return _outcome_of_verdict(error, held)
    if isinstance(error, LeaseLost) and held.warned:
        return None
    if isinstance(error, asyncio.CancelledError):
        error = _Cancelled("the handler was cancelled, though nobody asked for it to stop").with_traceback(
            error.__traceback__
        )
    return Failed(failure_of(error), permanent=held.handler.gives_up_on(error))


def outcome_of_stop(held: HeldAttempt) -> Outcome | None:
    """The outcome of an attempt that was stopped; `None` after a loss."""
    lease = held.lease
    match held.stop_reason:
        case StopReason.CANCEL:
            return Stopped(killed=held.killed)
        case StopReason.TIMEOUT:
            text = f"the handler ran longer than its timeout{_of(lease.timeout_us)}{_killed(held)}"
            return Failed(failure("TimedOut", text), reason="timeout")
        case StopReason.DEADLINE:
            text = f"the deadline of its execution limit passed while the handler ran{_killed(held)}"
            return Failed(failure("DeadlinePassed", text), reason="timeout")
        case StopReason.DRAIN:
            return HandedBack()
        case _:
            return None


def bad_payload(error: BadPayload) -> Failed:
    """The outcome of a payload that the handler's types do not take: another attempt would not help."""
    return Failed(failure("BadPayload", f"{error.field}: {error}"), permanent=True, reason="bad_payload")


def bad_result(error: BadResult) -> Failed:
    """The outcome of a result that cannot be kept: another attempt would not help."""
    return Failed(failure("BadResult", str(error)), permanent=True, reason="bad_result")


def _outcome_of_verdict(verdict: Verdict, held: HeldAttempt) -> Outcome:
    match verdict:
        case Snooze():
            return Snoozed(verdict.delay_us)
        case Cancel():
            return GaveUp(verdict.reason)
        case RetryAfter():
            return Failed(_failure_of_verdict(verdict, verdict.message), retry_after_us=verdict.after_us)
        case Fail():
            return Failed(_failure_of_verdict(verdict, verdict.message), permanent=verdict.permanent)
        case Partly():
            try:
                return SucceededPartly(encode_result(verdict.value), verdict.summary or held.summary)
            except BadResult as error:
                return bad_result(error)
        case _:
            return Failed(failure_of(verdict), permanent=True)


def _failure_of_verdict(verdict: Verdict, message: str) -> Any:
    trace = failure_of(verdict).traceback if verdict.__traceback__ is not None else ""
    return failure(type(verdict).__name__, message, trace)


def _of(timeout_us: int | None) -> str:
    return "" if timeout_us is None else f" of {timeout_us / SECOND_US:g} s"


def _killed(held: HeldAttempt) -> str:
    return ", did not stop when told to, and was left to itself" if held.killed else ""


class _Cancelled(Exception):
    """Stands for a `CancelledError` that came out of a handler by itself."""
