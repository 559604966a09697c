"""When a breaker opens and closes: the rule, and the rule beside a model that keeps every outcome."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.breaker import (
    TURNS,
    Breaker,
    BreakerEvent,
    BreakerState,
    Counted,
    check_breaker,
    failed,
    state_at,
)
from perdure.domain.limits import BREAKER_BUCKETS
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Charge, Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body
from perdure.errors import Invalid

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
BOOM = Failure("E", "boom")


def test_half_of_the_attempts_open_it_if_nothing_else_is_said() -> None:
    assert Breaker().share == 0.5
    assert Breaker(failures=3).share is None


@pytest.mark.parametrize(
    ("breaker", "attempts", "failures", "opens"),
    [
        (Breaker(share=0.5, min_attempts=10), 9, 9, False),
        (Breaker(share=0.5, min_attempts=10), 10, 5, True),
        (Breaker(share=0.5, min_attempts=10), 11, 5, False),
        (Breaker(share=1, min_attempts=1), 1, 1, True),
        (Breaker(failures=3), 100, 2, False),
        (Breaker(failures=3), 3, 3, True),
        (Breaker(share=0.9, failures=3, min_attempts=100), 50, 3, True),
    ],
)
def test_it_opens_by_a_share_of_enough_attempts_or_by_a_number(
    breaker: Breaker, attempts: int, failures: int, opens: bool
) -> None:
    event = breaker.judge(CLOSED, Counted(attempts, failures))
    assert event is (BreakerEvent.TOO_MANY_FAILED if opens else None)
    assert breaker.judge(OPEN, Counted(attempts, failures)) is None


def test_probes_decide_while_it_is_half_open() -> None:
    breaker = Breaker(probes=2)
    assert breaker.judge(HALF_OPEN, Counted(1, 0)) is None
    assert breaker.judge(HALF_OPEN, Counted(2, 0)) is BreakerEvent.PROBES_PASSED
    assert breaker.judge(HALF_OPEN, Counted(2, 1)) is BreakerEvent.PROBE_FAILED


def test_whoever_turns_it_by_hand_does_so_in_each_state() -> None:
    assert {TURNS[state, BreakerEvent.TRIP] for state in BreakerState} == {OPEN}
    assert {TURNS[state, BreakerEvent.RESET] for state in BreakerState} == {CLOSED}


def test_time_alone_makes_it_half_open() -> None:
    assert [state_at(5, now) for now in (4, 5, 6)] == [OPEN, HALF_OPEN, HALF_OPEN]
    assert state_at(None, 6) is CLOSED


@pytest.mark.parametrize(
    ("state", "sent", "expected"),
    [
        (TaskState.SUCCEEDED, Settlement.succeeded(Body(b"1"), None), False),
        (TaskState.RETRYING, Settlement.retry(BOOM, 0), True),
        (TaskState.DEAD_LETTERED, Settlement.failed(BOOM, Reason.DEADLINE, dead_letters=True), True),
        # A receipt or a cancel made another end of it.
        (TaskState.SUCCEEDED, Settlement.failed(BOOM, Reason.EXHAUSTED, dead_letters=True), False),
        (TaskState.CANCELLED, Settlement.failed(BOOM, Reason.EXHAUSTED, dead_letters=True), None),
        (TaskState.FAILED, Settlement.failed(BOOM, Reason.BAD_PAYLOAD, dead_letters=False), None),
        (TaskState.QUEUED, Settlement.lost_and_queued(Charge.LOSS), True),
        (TaskState.QUEUED, Settlement.lost_and_queued(Charge.NOTHING), None),
        (TaskState.QUEUED, Settlement.handed_back(), None),
        (TaskState.PENDING, Settlement.snoozed(0), None),
        (TaskState.QUEUED, Settlement.revoked_and_queued(), None),
        (None, Settlement.retry(BOOM, 0), None),
    ],
)
def test_what_is_a_failure_and_what_tells_nothing(
    state: TaskState | None, sent: Settlement, expected: bool | None
) -> None:
    assert failed(state, sent) is expected


def test_what_is_no_breaker_is_refused() -> None:
    assert check_breaker(None) is None
    with pytest.raises(Invalid, match=r"perdure\.Breaker"):
        check_breaker({"share": 1})


class Outcome(NamedTuple):
    """An attempt: when it was leased and ended, in steps of a tenth of the window, and whether it failed."""

    leased: int
    ended: int
    failed: bool


@st.composite
def outcomes(draw: st.DrawFn) -> list[Outcome]:
    rows = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 15), st.booleans()), max_size=60))
    return sorted((Outcome(at, at + ran, bad) for at, ran, bad in rows), key=lambda each: (each.ended, each))


@given(
    said=st.builds(
        Breaker,
        share=st.sampled_from([None, 0.3, 0.5, 1.0]),
        failures=st.sampled_from([None, 1, 4]),
        window=st.just(10.0),
        min_attempts=st.integers(1, 6),
        open_for=st.sampled_from([1.0, 5.0]),
        probes=st.integers(1, 3),
    ),
    history=outcomes(),
)
def test_it_turns_as_a_model_that_keeps_every_outcome(said: Breaker, history: list[Outcome]) -> None:
    step = said.window_us // BREAKER_BUCKETS
    since, until = 0, None
    kept: list[Outcome] = []
    buckets: dict[tuple[int, int], Counted] = {}
    for each in history:
        now = each.ended * step
        state = state_at(until, now)
        # The model: what counts are attempts that began since the last change, or since probes may start.
        if each.leased * step < (since if until is None else until):
            continue
        kept.append(each)
        bucket = buckets.get((since, said.bucket_us(now)), Counted(0, 0))
        buckets[since, said.bucket_us(now)] = Counted(bucket.attempts + 1, bucket.failures + each.failed)
        begin = now - said.window_us if state is CLOSED else -1
        seen = [one for one in kept if one.ended * step > begin]
        told = [count for (epoch, at), count in buckets.items() if epoch == since and at > begin]
        counted = Counted(sum(count.attempts for count in told), sum(count.failures for count in told))
        assert counted == (len(seen), sum(one.failed for one in seen))
        event = said.judge(state, counted) if each.failed or state is HALF_OPEN else None
        assert state is not OPEN
        if event is None:
            continue
        turned = TURNS[state, event]
        assert turned is not state
        if turned is OPEN:
            assert each.failed
        else:
            assert not any(one.failed for one in seen)
            assert len(seen) >= said.probes
        since, until = now + 1, now + said.open_us if turned is OPEN else None
        kept.clear()
