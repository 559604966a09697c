"""What is written when an attempt ends: one order of decisions, budgets to the last, every move in the table."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

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
from perdure.domain.settlement import (
    AttemptFacts,
    Charge,
    Receipt,
    Settlement,
    needs_facts,
    settle,
    settle_cancel_overdue,
    settle_good,
    settle_loss,
    settle_overdue,
    settle_revoked,
)
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.domain.task import Body
from perdure.domain.transitions import TABLE, Event, check

S = limits.SECOND_US
NOW = 1_000_000 * S
BOOM = Failure("ValueError", "boom")
RECEIPT = Receipt("attempt", False, Body(b'"kept"'), "kept")
FIXED = Retry(backoff="fixed", base=10.0, jitter=0.0)


def facts(**given: Any) -> AttemptFacts:
    """A running attempt of a task with all of its budget and a day left."""
    usual: dict[str, Any] = {
        "now_us": NOW,
        "state": TaskState.RUNNING,
        "failures": 0,
        "losses": 0,
        "snoozes": 0,
        "hand_backs": 0,
        "max_attempts": 3,
        "max_losses": 3,
        "on_loss": "retry",
        "deadline_us": NOW + 86400 * S,
        "expires_us": None,
        "dead_letters": True,
        "receipt": None,
    }
    return AttemptFacts(**{**usual, **given})


CANCELLING = {"state": TaskState.CANCELLING}
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(Body(b"1")),
    SucceededPartly(Body(b"1")),
    Failed(BOOM),
    Failed(BOOM, permanent=True),
    Snoozed(5 * S),
    GaveUp("no need"),
    HandedBack(),
    Stopped(),
    NotStarted(),
)


# The order of decisions


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_cancel_beats_every_outcome_of_the_handler(outcome: Outcome) -> None:
    settlement = settle(outcome, facts(**CANCELLING), FIXED, 0.0)
    assert settlement.state is TaskState.CANCELLED
    assert settlement.event is Event.ACKNOWLEDGE
    assert settlement.result is None


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_receipt_beats_the_cancel(outcome: Outcome) -> None:
    settlement = settle(outcome, facts(**CANCELLING, receipt=RECEIPT), FIXED, 0.0)
    assert settlement.state is TaskState.SUCCEEDED
    assert settlement.event is Event.ACKNOWLEDGE
    assert settlement.result == RECEIPT.result


@pytest.mark.parametrize("outcome", [each for each in OUTCOMES if needs_facts(each)], ids=repr)
def test_a_receipt_beats_a_failure_that_came_after_it(outcome: Outcome) -> None:
    settlement = settle(outcome, facts(receipt=RECEIPT, deadline_us=NOW, failures=2), FIXED, 0.0)
    assert settlement.state is TaskState.SUCCEEDED
    assert settlement.charge is Charge.NOTHING


@pytest.mark.parametrize("outcome", [Failed(BOOM), Snoozed(S), HandedBack()], ids=repr)
def test_the_deadline_beats_the_budget(outcome: Outcome) -> None:
    settlement = settle(outcome, facts(deadline_us=NOW), FIXED, 0.0)
    assert settlement.state is TaskState.DEAD_LETTERED
    assert settlement.reason is Reason.DEADLINE


def test_a_failure_keeps_its_error_when_the_deadline_ends_it() -> None:
    assert settle(Failed(BOOM), facts(deadline_us=NOW), FIXED, 0.0).error == BOOM


# The handler's own failures


def test_a_failure_with_budget_left_waits_its_backoff() -> None:
    settlement = settle(Failed(BOOM), facts(failures=1), FIXED, 0.0)
    assert settlement == Settlement.retry(BOOM, 10 * S)
    assert settlement.charge is Charge.ATTEMPT


@pytest.mark.parametrize("max_attempts", [1, 2, 3, 7])
def test_the_last_attempt_is_the_one_that_the_budget_says(max_attempts: int) -> None:
    ends = [
        settle(Failed(BOOM), facts(failures=failures, max_attempts=max_attempts), FIXED, 0.0).state
        for failures in range(max_attempts)
    ]
    assert ends == [TaskState.RETRYING] * (max_attempts - 1) + [TaskState.DEAD_LETTERED]


def test_an_exhausted_budget_is_told_apart_from_a_permanent_failure() -> None:
    assert settle(Failed(BOOM), facts(failures=2), FIXED, 0.0).reason is Reason.EXHAUSTED
    assert settle(Failed(BOOM, permanent=True), facts(), FIXED, 0.0).reason is Reason.PERMANENT


@pytest.mark.parametrize("reason", ["timeout", "bad_payload", "bad_result"])
def test_a_named_failure_keeps_its_reason_to_the_end(reason: str) -> None:
    assert settle(Failed(BOOM, reason=reason), facts(failures=2), FIXED, 0.0).reason is Reason(reason)
    assert settle(Failed(BOOM, reason=reason, permanent=True), facts(), FIXED, 0.0).reason is Reason(reason)


def test_dead_letters_switched_off_makes_it_fail() -> None:
    assert settle(Failed(BOOM, permanent=True), facts(dead_letters=False), FIXED, 0.0).state is TaskState.FAILED


def test_the_handler_may_say_when_to_try_again() -> None:
    assert settle(Failed(BOOM, retry_after_us=3 * S), facts(), FIXED, 0.0).delay_us == 3 * S


def test_a_retry_that_is_due_at_the_deadline_fails_with_the_handlers_error() -> None:
    settlement = settle(Failed(BOOM), facts(deadline_us=NOW + 10 * S), FIXED, 0.0)
    assert (settlement.state, settlement.reason) == (TaskState.DEAD_LETTERED, Reason.DEADLINE)
    assert settlement.error == BOOM
    assert settle(Failed(BOOM), facts(deadline_us=NOW + 10 * S + 1), FIXED, 0.0).state is TaskState.RETRYING


def test_a_retry_that_is_due_at_the_ttl_fails_with_the_handlers_error() -> None:
    settlement = settle(Failed(BOOM), facts(expires_us=NOW + 10 * S), FIXED, 0.0)
    assert (settlement.state, settlement.reason, settlement.error) == (TaskState.DEAD_LETTERED, Reason.TTL, BOOM)
    assert settle(Failed(BOOM), facts(expires_us=NOW + 10 * S + 1), FIXED, 0.0).state is TaskState.RETRYING


def test_a_retry_keeps_the_ttl_and_everything_that_is_not_the_handlers_fault_clears_it() -> None:
    assert not settle(Failed(BOOM), facts(), FIXED, 0.0).clears_ttl
    assert settle(Snoozed(S), facts(), FIXED, 0.0).clears_ttl
    assert settle(HandedBack(), facts(), FIXED, 0.0).clears_ttl
    assert settle_loss(facts(), FIXED, 0.0, True).clears_ttl
    assert settle_loss(facts(losses=1), FIXED, 0.0, True).clears_ttl
    assert settle_revoked(facts()).clears_ttl


# Snoozing and handing back


def test_a_snooze_spends_no_budget_and_is_counted() -> None:
    settlement = settle(Snoozed(7 * S), facts(failures=2), FIXED, 0.0)
    assert settlement == Settlement.snoozed(7 * S)
    assert settlement.charge is Charge.SNOOZE


def test_the_thousandth_snooze_is_the_last() -> None:
    assert settle(Snoozed(S), facts(snoozes=limits.SNOOZES_MAX - 1), FIXED, 0.0).state is TaskState.PENDING
    ended = settle(Snoozed(S), facts(snoozes=limits.SNOOZES_MAX), FIXED, 0.0)
    assert (ended.state, ended.reason) == (TaskState.DEAD_LETTERED, Reason.PERMANENT)


def test_a_snooze_past_the_deadline_ends_the_task() -> None:
    ended = settle(Snoozed(10 * S), facts(deadline_us=NOW + 10 * S), FIXED, 0.0)
    assert (ended.state, ended.reason) == (TaskState.DEAD_LETTERED, Reason.DEADLINE)


def test_a_task_handed_back_goes_to_the_front_at_no_cost() -> None:
    settlement = settle(HandedBack(), facts(failures=2), FIXED, 0.0)
    assert (settlement.state, settlement.attempt) == (TaskState.QUEUED, AttemptState.RELEASED)
    assert settlement.front
    assert settlement.charge is Charge.HAND_BACK


def test_the_hundredth_hand_back_is_the_last() -> None:
    assert settle(HandedBack(), facts(hand_backs=limits.HAND_BACKS_MAX - 1), FIXED, 0.0).state is TaskState.QUEUED
    assert settle(HandedBack(), facts(hand_backs=limits.HAND_BACKS_MAX), FIXED, 0.0).state is TaskState.DEAD_LETTERED


# Losses


def test_the_first_loss_is_queued_at_once_and_the_second_waits() -> None:
    first = settle_loss(facts(), FIXED, 0.0, True)
    assert (first.state, first.front, first.delay_us, first.charge) == (TaskState.QUEUED, True, 0, Charge.LOSS)
    second = settle_loss(facts(losses=1), FIXED, 0.0, True)
    assert (second.state, second.delay_us, second.charge) == (TaskState.RETRYING, 10 * S, Charge.LOSS)


@pytest.mark.parametrize("max_losses", [1, 2, 3, 5])
def test_as_many_runs_are_lost_as_the_budget_says(max_losses: int) -> None:
    ends = [
        settle_loss(facts(losses=losses, max_losses=max_losses), FIXED, 0.0, True).state for losses in range(max_losses)
    ]
    assert TaskState.DEAD_LETTERED not in ends[:-1]
    assert ends[-1] is TaskState.DEAD_LETTERED


def test_a_loss_that_counts_spends_the_attempts_too() -> None:
    assert settle_loss(facts(on_loss="count"), FIXED, 0.0, True).charge is Charge.LOSS_AND_ATTEMPT
    ended = settle_loss(facts(on_loss="count", failures=2), FIXED, 0.0, True)
    assert (ended.state, ended.reason) == (TaskState.DEAD_LETTERED, Reason.WORKER_LOST)


def test_a_loss_that_does_not_count_leaves_the_attempts_alone() -> None:
    assert settle_loss(facts(failures=2), FIXED, 0.0, True).state is TaskState.QUEUED


def test_a_task_that_must_not_be_replayed_ends_with_its_worker() -> None:
    for charged in (True, False):
        ended = settle_loss(facts(on_loss="fail"), FIXED, 0.0, charged)
        assert (ended.state, ended.reason) == (TaskState.DEAD_LETTERED, Reason.WORKER_LOST)


def test_a_loss_while_time_is_in_doubt_costs_nothing() -> None:
    for on_loss in ("retry", "count"):
        settlement = settle_loss(facts(on_loss=on_loss, losses=2, failures=2), FIXED, 0.0, False)
        assert (settlement.state, settlement.charge) == (TaskState.QUEUED, Charge.NOTHING)


def test_a_loss_after_the_cancel_ends_cancelled() -> None:
    settlement = settle_loss(facts(**CANCELLING, deadline_us=NOW), FIXED, 0.0, True)
    assert (settlement.event, settlement.state) == (Event.LOSE, TaskState.CANCELLED)


def test_a_loss_at_the_deadline_ends_by_the_deadline() -> None:
    assert settle_loss(facts(deadline_us=NOW), FIXED, 0.0, True).reason is Reason.DEADLINE
    waits_too_long = settle_loss(facts(losses=1, deadline_us=NOW + 10 * S), FIXED, 0.0, True)
    assert (waits_too_long.state, waits_too_long.reason) == (TaskState.DEAD_LETTERED, Reason.DEADLINE)


def test_an_attempt_past_its_deadline_is_failed_by_the_deadline() -> None:
    assert settle_overdue(facts(deadline_us=NOW), False, FIXED, 0.0).reason is Reason.DEADLINE


def test_an_attempt_past_its_timeout_spends_an_attempt() -> None:
    settlement = settle_overdue(facts(), True, FIXED, 0.0)
    assert (settlement.state, settlement.reason, settlement.charge) == (
        TaskState.RETRYING,
        Reason.TIMEOUT,
        Charge.ATTEMPT,
    )
    assert settle_overdue(facts(failures=2), True, FIXED, 0.0).state is TaskState.DEAD_LETTERED


def test_a_revoked_worker_costs_the_task_nothing() -> None:
    settlement = settle_revoked(facts(failures=2, losses=2))
    assert (settlement.state, settlement.charge, settlement.front) == (TaskState.QUEUED, Charge.NOTHING, True)


# Every decision is a move of the table

DECISIONS: dict[str, Callable[[AttemptFacts], Settlement]] = {
    "loss": lambda each: settle_loss(each, FIXED, 0.0, True),
    "uncharged loss": lambda each: settle_loss(each, FIXED, 0.0, False),
    "timed out": lambda each: settle_overdue(each, True, FIXED, 0.0),
    "past its deadline": lambda each: settle_overdue(each, False, FIXED, 0.0),
    "revoked": settle_revoked,
    **{
        f"settle {outcome!r}": (lambda each, outcome=outcome: settle(outcome, each, FIXED, 0.0))
        for outcome in OUTCOMES
        if not isinstance(outcome, Stopped | NotStarted)
    },
}


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("state", [TaskState.LEASED, TaskState.RUNNING, TaskState.CANCELLING])
@pytest.mark.parametrize("receipt", [None, RECEIPT, RECEIPT._replace(partly=True)])
def test_every_decision_is_a_move_that_the_table_has(decision: str, state: TaskState, receipt: Receipt | None) -> None:
    for failures, losses, snoozes, hand_backs, late, on_loss in itertools.product(
        (0, 2),
        (0, 1, 2),
        (0, limits.SNOOZES_MAX),
        (0, limits.HAND_BACKS_MAX),
        (False, True),
        ("retry", "count", "fail"),
    ):
        each = facts(
            state=state,
            receipt=receipt,
            failures=failures,
            losses=losses,
            snoozes=snoozes,
            hand_backs=hand_backs,
            on_loss=on_loss,
            deadline_us=NOW if late else NOW + 3600 * S,
        )
        settlement = DECISIONS[decision](each)
        check(state, settlement.event, settlement.state)


@pytest.mark.parametrize("receipt", [None, RECEIPT])
def test_the_cancel_deadline_is_a_move_that_the_table_has(receipt: Receipt | None) -> None:
    settlement = settle_cancel_overdue(facts(**CANCELLING, receipt=receipt))
    check(TaskState.CANCELLING, settlement.event, settlement.state)


def constructed() -> list[Settlement]:
    """One of each named constructor."""
    return [
        Settlement.succeeded(Body(b"1")),
        Settlement.succeeded_partly(Body(b"1")),
        Settlement.retry(BOOM, S),
        Settlement.failed(BOOM, Reason.EXHAUSTED, True),
        Settlement.failed(BOOM, Reason.EXHAUSTED, False),
        Settlement.gave_up("why"),
        Settlement.snoozed(S),
        Settlement.handed_back(),
        Settlement.expired_unstarted(),
        Settlement.acknowledged(),
        Settlement.acknowledged(killed=True),
        Settlement.cancel_overdue(),
        Settlement.cancelled_by_loss(),
        *(Settlement.by_receipt(RECEIPT, event) for event in (Event.SUCCEED, Event.LOSE, Event.ACKNOWLEDGE)),
        Settlement.lost_and_queued(Charge.LOSS),
        Settlement.lost_and_retrying(Charge.LOSS, S),
        Settlement.lost_for_good(Charge.LOSS, Reason.WORKER_LOST, True),
        Settlement.revoked_and_queued(),
    ]


@pytest.mark.parametrize("settlement", constructed(), ids=lambda each: f"{each.event}-{each.state}")
def test_every_settlement_names_a_row_with_its_attempts_state(settlement: Settlement) -> None:
    rows = [row for row in TABLE if row.event == settlement.event and settlement.state in row.targets]
    assert any(settlement.attempt in row.attempt for row in rows)


def test_success_reads_nothing() -> None:
    for outcome in OUTCOMES:
        if needs_facts(outcome):
            with pytest.raises(TypeError):
                settle_good(outcome)
        else:
            assert settle_good(outcome) == settle(outcome, facts(), FIXED, 0.0)
