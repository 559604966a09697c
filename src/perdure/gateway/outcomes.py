"""From what a remote worker says of an end to the outcome that the engine settles by."""

from dataclasses import replace

from perdure import wire
from perdure.domain import limits, outcome
from perdure.domain.outcome import Outcome
from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.errors import Refused
from perdure.wire import shapes
from perdure.wire.shapes import JSON, Json, json_body
from perdure.wire.working import AnyOutcome


def outcome_of(said: wire.SettleOne) -> Outcome:
    """The outcome, with what is told beside it."""
    ended = _outcome_of(said.outcome)
    if isinstance(ended, outcome.Stopped):
        return replace(ended, ran_us=said.ran_us, told_us=said.told_us)
    return ended if said.ran_us is None else replace(ended, ran_us=said.ran_us)


def _outcome_of(said: AnyOutcome) -> Outcome:
    """The outcome. A result that may not be stored is a failure for good, as it is of a local handler."""
    match said:
        case wire.Succeeded() | wire.SucceededPartly():
            return _success(said)
        case wire.Failed():
            error = outcome.Failure(said.error.type, said.error.message, said.error.traceback)
            return outcome.Failed(error, said.permanent, said.reason, said.retry_after_us)
        case wire.Snoozed():
            return outcome.Snoozed(said.delay_us)
        case wire.GaveUp():
            return outcome.GaveUp(said.reason)
        case wire.HandedBack():
            return outcome.HandedBack()
        case wire.Stopped():
            return outcome.Stopped(said.killed)
        case wire.NotStarted():
            return outcome.NotStarted()


def _success(said: wire.Succeeded | wire.SucceededPartly) -> Outcome:
    try:
        body = _checked(said.result, said.result_encoding)
    except Refused as refusal:
        return outcome.Failed(outcome.Failure("BadResult", refusal.message), permanent=True, reason="bad_result")
    made = outcome.Succeeded if isinstance(said, wire.Succeeded) else outcome.SucceededPartly
    return made(body, said.summary)


def _checked(result: Json, name: str) -> Body:
    if result is shapes.NULL:
        return Body(b"null", JSON)
    if name != JSON:
        return json_body(result, name, "result")
    return Body(encoding.encode(result, "result", limits.RESULT_MAX_BYTES), JSON)
