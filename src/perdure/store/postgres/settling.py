"""Ending attempts: the one way in which any attempt ends, whoever ends it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.domain import limits
from perdure.domain.states import ENDED, GOOD_ENDS, TaskState
from perdure.store.ledger import Guard, SettleAnswer, Settled, Settling
from perdure.store.postgres.following import follow
from perdure.store.postgres.submission import collided
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import breakers
from perdure.store.relational.bodies import text_of
from perdure.store.relational.ending import let_others_in, open_gates
from perdure.store.relational.transaction import batch
from perdure.store.wakeups import Topic

_breaker_of = msgspec.json.Decoder(tuple[str, str, int, str]).decode
_gates_of = msgspec.json.Decoder(list[int]).decode
_LOST = Settled(SettleAnswer.LEASE_LOST, None)

Group = tuple[tuple[Any, ...], list[tuple[Any, ...]]]
"""What settlements share, and what each has of its own."""


def settle(tx: Transaction, settlings: Sequence[Settling]) -> list[Settled]:
    """End attempts whose guard holds; answer repeats as they were answered first."""
    answers: list[Settled] = [_LOST] * len(settlings)
    seen: set[tuple[str, str]] = set()
    once: list[int] = []
    again: list[int] = []
    for place, each in enumerate(settlings):
        named = each.hold[1:3]
        (again if named in seen else once).append(place)
        seen.add(named)
    for places in (_free(tx, settlings, once), again):
        if places:
            _settle(tx, settlings, places, answers, last=not again)
    lost = [place for place, answer in enumerate(answers) if answer is _LOST]
    if lost:
        _answer_repeats(tx, settlings, lost, answers)
    return answers


def _free(tx: Transaction, settlings: Sequence[Settling], places: list[int]) -> list[int]:
    """Those of these attempts that can be ended now: a duty does not wait for others' locks, it comes again."""
    rows = [(place, *settlings[place].hold[:3]) for place in places if settlings[place].guard is not Guard.HOLDER]
    if not rows:
        return places
    free = {*tx.document("settle_free", batch=batch(rows))}
    return [place for place in places if settlings[place].guard is Guard.HOLDER or place in free]


def _settle(
    tx: Transaction, settlings: Sequence[Settling], places: list[int], answers: list[Settled], *, last: bool
) -> None:
    """Settle attempts of which none is named twice. `last`: no others follow in this transaction."""
    groups, returning = _grouped(settlings, places)
    document = batch(groups)
    bounds = {"suspension_max": limits.LEASE_MAX_US, "timeout_grace": limits.TIMEOUT_GRACE_US}
    # Gates are locked after all rows of tasks.
    frees = last and not returning
    ended = tx.run("settle_end", batch=document, frees=frees, **bounds)
    returned = tx.run("settle_return", batch=document, **bounds) if returning and len(ended) < len(places) else []
    if returning and len(ended) + len(returned) < len(places):
        # A cancel may have come in between the two: then the task does not go on, it ends.
        done = {place for place, *_ in (*ended, *returned)}
        left, _ = _grouped(settlings, [place for place in places if place not in done])
        ended += tx.run("settle_end", batch=batch(left), frees=frees, **bounds)
    for place, state, *_ in (*ended, *returned):
        answers[place] = Settled(SettleAnswer.APPLIED, TaskState(state))
    _refuse_unseen_receipts(tx, settlings, ended, returned)
    if returned:
        tx.announce(Topic.READY | Topic.DUE)
    of_jobs = [(n, job, state in GOOD_ENDS) for _, state, n, job, *_ in ended if job is not None]
    if ended:
        tx.announce(Topic.ENDED)
        if of_jobs:
            follow(tx, of_jobs)
    if frees and not of_jobs:
        for gates in [row[7] for row in ended if row[7] is not None]:
            open_gates(tx, sorted(_gates_of(gates)))
    elif gated := [(row[2], row[1] in ENDED, row[1]) for row in (*ended, *returned) if row[5]]:
        let_others_in(tx, gated)
    watched = {row[0]: _breaker_of(row[6]) for row in (*ended, *returned) if row[6] is not None}
    if watched:
        breakers.settled(tx, answers, settlings, watched)


def _refuse_unseen_receipts(
    tx: Transaction, settlings: Sequence[Settling], ended: list[Any], returned: list[Any]
) -> None:
    """A receipt is written under a lock of its task. One that is committed while a settle waits for that lock is not
    seen by it, so the settle is run again. A good end by the holder may stand: its result is as true as the receipt's.
    """
    doubtful = [
        (n, settlings[place].hold.attempt_id)
        for place, state, n, _, proven, *_ in (*ended, *returned)
        if not proven and (state not in GOOD_ENDS or settlings[place].guard != Guard.HOLDER)
    ]
    if doubtful and tx.value("settle_proven", batch=batch(doubtful)):
        raise collided("the receipt of an attempt was committed while the attempt was being ended")


def _grouped(settlings: Sequence[Settling], places: list[int]) -> tuple[list[Group], bool]:
    """The settlements as the statements take them, and whether any of them lets its task go on."""
    groups: dict[tuple[Any, ...], Group] = {}
    returning = False
    for place in places:
        each = settlings[place]
        shared = _template(each)
        returning = returning or not shared[2]
        hold = each.hold
        own = (place, hold.task_id, hold.attempt_id, hold.token, each.digest, each.ran_us)
        group = groups.setdefault(shared, (shared, []))
        group[1].append(own if each.told_us is None else (*own, each.told_us))
    return list(groups.values()), returning


def _template(each: Settling) -> tuple[Any, ...]:
    """What a settlement may share with others, in the order in which the statements read it."""
    settlement = each.settlement
    result, error = settlement.result, settlement.error
    return (
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


def _answer_repeats(tx: Transaction, settlings: Sequence[Settling], lost: list[int], answers: list[Settled]) -> None:
    """Tell repeats from strangers, and remember that a result came too late."""
    asked = batch([(*settlings[place].hold[:3], settlings[place].digest) for place in lost])
    late = []
    seen = set()
    for key, state, same, n, generation, known, initiator in tx.document("settle_repeated", batch=asked):
        place = lost[key]
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
