"""End attempts: the outcome of a handler becomes a settlement. Success reads nothing, everything else reads once."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from perdure.ambient import Chance
from perdure.domain import limits
from perdure.domain.attempt import Hold
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
from perdure.domain.settlement import AttemptFacts, Settlement, needs_facts, settle, settle_good
from perdure.domain.states import WAITING, Reason
from perdure.domain.transitions import Event
from perdure.engine.bounded_text import shortened
from perdure.engine.encoding import JSON
from perdure.engine.flow import tell
from perdure.engine.parts_taken import PartsTaken
from perdure.engine.retry_policies import RetryPolicies
from perdure.store.ledger import Guard, Ledger, SettleAnswer, Settled, Settling

DIGEST_BYTES = 16


class Settle:
    """Settles for the holders of leases."""

    def __init__(self, ledger: Ledger, chance: Chance, policies: RetryPolicies, parts: PartsTaken) -> None:
        self._ledger = ledger
        self._chance = chance
        self._policies = policies
        self._parts = parts

    async def __call__(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        """One answer per outcome, in order. The same outcome again is answered as before and applied once."""
        answers: list[Settled] = []
        for start in range(0, len(outcomes), limits.SETTLE_MAX_ITEMS):
            answers += await self._settle(outcomes[start : start + limits.SETTLE_MAX_ITEMS])
        return answers

    async def _settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        checked = [(hold, self._checked(hold, outcome)) for hold, outcome in outcomes]
        to_read = [index for index, (_, outcome) in enumerate(checked) if needs_facts(outcome)]
        facts: dict[int, AttemptFacts | None] = {}
        if to_read:
            facts = dict(zip(to_read, await self._ledger.facts([checked[index][0] for index in to_read]), strict=True))
        settlings = self._settlings(outcomes, checked, facts)
        answers = await self._ledger.settle(settlings)
        for index in to_read:
            answers[index] = _with_delay(answers[index], settlings[index].settlement)
        tell(answer.turned for answer in answers)
        self._parts.forget(*[hold.attempt_id for hold, _ in checked])
        return answers

    def _settlings(
        self,
        outcomes: Sequence[tuple[Hold, Outcome]],
        checked: Sequence[tuple[Hold, Outcome]],
        facts: Mapping[int, AttemptFacts | None],
    ) -> list[Settling]:
        """What is asked of the ledger. Where handlers in a row end alike, what follows from it is worked out once."""
        settlings: list[Settling] = []
        last: Outcome | None = None
        for index, ((_, sent), (hold, outcome)) in enumerate(zip(outcomes, checked, strict=True)):
            read, as_sent = index in facts, outcome is sent
            if read or not as_sent or sent != last:
                settlement = self._decide(outcome, facts[index]) if read else settle_good(outcome)
                # Of the outcome as it was sent: what was noted meanwhile must not make a repeat look new.
                named = digest(sent)
                last = sent if as_sent and not read else None
            told_us = outcome.told_us if isinstance(outcome, Stopped) else None
            settlings.append(Settling(hold, Guard.HOLDER, settlement, named, sent.ran_us, told_us))
        return settlings

    def _checked(self, hold: Hold, outcome: Outcome) -> Outcome:
        """The outcome within its bounds; a result that may not be stored is a failure."""
        match outcome:
            case Succeeded() | SucceededPartly():
                return self._checked_result(hold, outcome)
            case Failed():
                return _bounded_failure(outcome)
            case Snoozed(delay_us):
                return Snoozed(min(max(delay_us, 0), limits.SNOOZE_MAX_US))
            case GaveUp(reason):
                return GaveUp(shortened(reason, limits.SUMMARY_MAX_BYTES))
            case _:
                return outcome

    def _checked_result(self, hold: Hold, outcome: Succeeded | SucceededPartly) -> Outcome:
        size = len(outcome.result.data)
        if size > limits.RESULT_MAX_BYTES:
            return _bad_result(f"the result is {size:,} bytes, the limit is {limits.RESULT_MAX_BYTES:,}")
        missing = self._parts.missing(hold.attempt_id)
        if missing is not None:
            return _bad_result(f"part {missing} of the result is missing")
        if outcome.summary is not None:
            return type(outcome)(outcome.result, shortened(outcome.summary, limits.SUMMARY_MAX_BYTES))
        return outcome

    def _decide(self, outcome: Outcome, facts: AttemptFacts | None) -> Settlement:
        if facts is None:
            return _unread(outcome)
        return settle(outcome, facts, self._policies.of(facts.retry), self._chance.uniform(-1.0, 1.0))


def _with_delay(answer: Settled, settlement: Settlement) -> Settled:
    """The answer, with when the task is tried again if that is by this settlement: what was there before stays."""
    if answer.answer is SettleAnswer.APPLIED and answer.state in WAITING and settlement.event is Event.RETRY:
        return answer._replace(delay_us=settlement.delay_us)
    return answer


def _unread(outcome: Outcome) -> Settlement:
    """What is sent for an attempt that is not live: the store answers it from the attempt's own record."""
    match outcome:
        case Snoozed(delay_us):
            return Settlement.snoozed(delay_us)
        case HandedBack():
            return Settlement.handed_back()
        case Failed(error):
            return Settlement.failed(error, Reason.ERROR, dead_letters=True)
        case _:
            return settle_good(outcome)


def _bad_result(message: str) -> Failed:
    return Failed(Failure("BadResult", message), permanent=True, reason="bad_result")


def _bounded_failure(outcome: Failed) -> Failed:
    error = outcome.error
    kind = shortened(error.type, limits.ERROR_MAX_BYTES // 16)
    message = shortened(error.message, limits.ERROR_MAX_BYTES // 4)
    left = limits.ERROR_MAX_BYTES - len(kind.encode()) - len(message.encode())
    # The last lines of a traceback say where it happened.
    traceback = shortened(error.traceback, left, keep_end=True)
    return Failed(Failure(kind, message, traceback), outcome.permanent, outcome.reason, outcome.retry_after_us)


def digest(outcome: Outcome) -> str:
    """Names an outcome in 32 hexadecimal digits: the same outcome sent again has the same digest."""
    if type(outcome) is Succeeded and outcome.summary is None and outcome.result.encoding == JSON:
        # What nearly all are, without the way below.
        return blake2b(outcome.result.data, digest_size=DIGEST_BYTES, person=b"json result").hexdigest()
    named = blake2b(type(outcome).__name__.encode(), digest_size=DIGEST_BYTES)
    match outcome:
        case Succeeded(result, summary) | SucceededPartly(result, summary):
            _add(named, result.encoding, summary or "")
            named.update(result.data)
        case Failed(error, permanent, reason, retry_after_us):
            _add(named, error.type, error.message, error.traceback, str(permanent), reason, str(retry_after_us))
        case Snoozed(delay_us):
            _add(named, str(delay_us))
        case GaveUp(reason):
            _add(named, reason)
        case HandedBack() | Stopped() | NotStarted():
            pass
    return named.hexdigest()


def _add(named: blake2b, *texts: str) -> None:
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        named.update(b"%d:" % len(data))
        named.update(data)
