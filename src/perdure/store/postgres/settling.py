"""Ending attempts: the one way in which any attempt ends, whoever ends it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

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
_APPLIED = {state.value: Settled(SettleAnswer.APPLIED, state) for state in TaskState}
_LOST = Settled(SettleAnswer.LEASE_LOST, None)

Group = tuple[tuple[Any, ...], list[tuple[Any, ...]]]
"""What settlements share, and what each has of its own."""


class EndedRow(NamedTuple):
    """What `settle_end` and `settle_return` tell of an attempt that they ended, in their order."""

    place: int
    """Which of the settlements ended it."""
    state: str
    n: int
    job: int | None
    proven: bool
    """There is a receipt of it."""
    gated: int | None
    """1: the task has gates."""
    breaker: str | None
    """What a breaker of its kind has to know, as JSON."""
    opened: str | None = None
    """The gates that the statement freed and for which others wait, as JSON; the first task with gates has them."""


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
            _settle(tx, settlings, places, answers, only_pass=not again)
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
    tx: Transaction, settlings: Sequence[Settling], places: list[int], answers: list[Settled], *, only_pass: bool
) -> None:
    """Settle attempts of which none is named twice. `only_pass`: all of this transaction's are among them."""
    groups, returning = _grouped(settlings, places)
    document = batch(groups)
    # Gates are locked after all rows of tasks, and without waiting where there are some already.
    frees = only_pass and not returning and not tx.has_gates
    ended = _run(tx, "settle_end", document, frees=frees)
    tx.has_gates = tx.has_gates or (frees and any(row.gated for row in ended))
    returned = _run(tx, "settle_return", document) if returning and len(ended) < len(places) else []
    if returning and len(ended) + len(returned) < len(places):
        # A cancel may have come in between the two: then the task does not go on, it ends.
        done = {row.place for row in (*ended, *returned)}
        left, _ = _grouped(settlings, [place for place in places if place not in done])
        ended += _run(tx, "settle_end", batch(left), frees=False)
    rows = [*ended, *returned]
    for row in rows:
        answers[row[0]] = _APPLIED[row[1]]
    _refuse_unseen_receipts(tx, settlings, rows)
    if returned:
        tx.announce(Topic.READY | Topic.DUE)
    of_jobs = [(row.n, row.job, row.state in GOOD_ENDS) for row in ended if row.job is not None]
    if ended:
        tx.announce(Topic.ENDED)
        if of_jobs:
            follow(tx, of_jobs)
    if frees and not of_jobs:
        for opened in [row.opened for row in ended if row.opened is not None]:
            open_gates(tx, sorted(_gates_of(opened)))
    elif gated := [(row.n, row.state in ENDED, row.state) for row in rows if row.gated]:
        let_others_in(tx, gated)
    watched = {row.place: _breaker_of(row.breaker) for row in rows if row.breaker is not None}
    if watched:
        breakers.settled(tx, answers, settlings, watched)


def _run(tx: Transaction, name: str, document: str, **given: bool) -> list[EndedRow]:
    bounds = {"suspension_max": limits.LEASE_MAX_US, "timeout_grace": limits.TIMEOUT_GRACE_US}
    return [EndedRow(*row) for row in tx.run(name, batch=document, **bounds, **given)]


def _refuse_unseen_receipts(tx: Transaction, settlings: Sequence[Settling], rows: Sequence[EndedRow]) -> None:
    """A receipt is written under a lock of its task. One that is committed while a settle waits for that lock is not
    seen by it, so the settle is run again. A good end by the holder may stand: its result is as true as the receipt's.
    """
    doubtful = [
        (row.n, settlings[row.place].hold.attempt_id)
        for row in rows
        if not row.proven and (row.state not in GOOD_ENDS or settlings[row.place].guard != Guard.HOLDER)
    ]
    if doubtful and tx.value("settle_proven", batch=batch(doubtful)):
        raise collided("the receipt of an attempt was committed while the attempt was being ended")


def _grouped(settlings: Sequence[Settling], places: list[int]) -> tuple[list[Group], bool]:
    """The settlements as the statements take them, and whether any of them lets its task go on."""
    groups: dict[tuple[Any, ...], Group] = {}
    returning = False
    group: Group | None = None
    last: Settling | None = None
    for place in places:
        each = settlings[place]
        hold = each.hold
        if group is None or last is None or not _alike(each, last):
            shared = _template(each)
            returning = returning or not shared[2]
            group, last = groups.setdefault(shared, (shared, [])), each
        own = (place, hold.task_id, hold.attempt_id, hold.token, each.digest, each.ran_us)
        group[1].append(own if each.told_us is None else (*own, each.told_us))
    return list(groups.values()), returning


def _alike(each: Settling, last: Settling) -> bool:
    """Whether two share all that `_template` reads, told without reading it."""
    return (
        each.settlement is last.settlement
        and each.guard is last.guard
        and each.hold.organization == last.hold.organization
    )


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
