"""Ending attempts: the one way in which any attempt ends, whoever ends it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.domain import limits
from perdure.domain.states import ENDED, TaskState
from perdure.store.ledger import Guard, SettleAnswer, Settled, Settling
from perdure.store.relational import breakers
from perdure.store.relational.bodies import text_of
from perdure.store.relational.counting import ATTEMPTS, count_moves
from perdure.store.relational.ending import follow_ends, let_others_in
from perdure.store.relational.line import places
from perdure.store.relational.transaction import batch
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic

_LOST = Settled(SettleAnswer.LEASE_LOST, None)


def settle(tx: Transaction, settlings: Sequence[Settling]) -> list[Settled]:
    """End attempts whose guard holds; answer repeats as they were answered first."""
    templates: dict[tuple[Any, ...], int] = {}
    rows = [_row(each, templates) for each in settlings]
    document, shared = batch(rows), batch(list(templates))
    tx.run(
        "settle_stage",
        batch=document,
        templates=shared,
        timeout_grace=limits.TIMEOUT_GRACE_US,
        suspension_max=limits.LEASE_MAX_US,
    )
    summary = tx.document("settle_summary")
    if len(summary["items"]) < len(settlings):
        tx.run("settle_stage_cancelling", batch=document, templates=shared)
        summary = tx.document("settle_summary")
    answers: list[Settled] = [_LOST] * len(settlings)
    for place, state in summary["items"]:
        answers[place] = Settled(SettleAnswer.APPLIED, TaskState(state))
    if summary["items"]:
        _apply(tx, summary)
    if summary["breakers"]:
        breakers.settled(tx, answers, settlings, {place: tuple(ended) for place, *ended in summary["breakers"]})
    if len(summary["items"]) < len(settlings):
        _answer_unstaged(tx, settlings, answers)
    return answers


def _row(each: Settling, templates: dict[tuple[Any, ...], int]) -> tuple[Any, ...]:
    """What a settlement has of its own; what it shares with others of the call becomes a template."""
    settlement = each.settlement
    result, error = settlement.result, settlement.error
    shared = (
        each.guard,
        settlement.state,
        settlement.state in ENDED,
        settlement.attempt,
        settlement.reason,
        settlement.charge,
        settlement.delay_us,
        settlement.clears_ttl,
        None if result is None else result.encoding,
        each.hold.organization,
        None if result is None else text_of(result),
        None if error is None else msgspec.json.encode(error).decode(),
        settlement.summary,
        settlement.event,
    )
    place = templates.setdefault(shared, len(templates))
    own = (each.hold.task_id, each.hold.attempt_id, each.hold.token, place, each.digest, each.ran_us)
    return own if each.told_us is None else (*own, each.told_us)


def _apply(tx: Transaction, summary: dict[str, Any]) -> None:
    attempts = len(summary["items"])
    returning = summary["returning"]
    tx.run("attempt_insert")
    if returning < attempts:
        tx.run("settle_end")
        tx.run("settle_remove")
        tx.announce(Topic.ENDED)
    if returning:
        tx.run("settle_return", front=places(tx, summary["queued"], front=True) if summary["queued"] else 0)
        tx.announce(Topic.READY | Topic.DUE)
    if summary["jobs"]:
        tx.run("settle_ended")
    tx.run("settling_clear")
    moves = summary["moves"]
    count_moves(tx, moves + [(lane, None, ATTEMPTS, moved) for lane, _, _, moved in moves])
    if summary["jobs"]:
        follow_ends(tx)
    if summary["gated"]:
        let_others_in(tx, summary["gated"])


def _answer_unstaged(tx: Transaction, settlings: Sequence[Settling], answers: list[Settled]) -> None:
    """Tell repeats from strangers, and remember that a result came too late."""
    places_left = [place for place, answer in enumerate(answers) if answer is _LOST]
    asked = batch([(*settlings[place].hold[:3], settlings[place].digest) for place in places_left])
    late = []
    seen = set()
    for key, state, same, n, generation, known, initiator in tx.document("settle_repeated", batch=asked):
        place = places_left[key]
        each = settlings[place]
        if same:
            answers[place] = Settled(SettleAnswer.REPLAYED, TaskState(state))
        elif each.guard == Guard.HOLDER and each.settlement.result is not None and not known and n not in seen:
            seen.add(n)
            late.append(_late_result(each, n, generation, initiator))
    if late:
        tx.run("event_insert", batch=batch(late))


def _late_result(each: Settling, n: int, generation: int, initiator: str) -> tuple[Any, ...]:
    result = each.settlement.result
    data = {"attempt": each.hold.attempt_id, "bytes": len(result.data) if result is not None else 0}
    return (each.hold.organization, n, None, generation, "late_result", "worker", initiator, batch(data))
