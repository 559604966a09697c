"""Breakers: how attempts of their kinds end is counted in the transaction that ends them, and turns them there.

Outcomes are counted in rows that only one session writes, so settlements never wait for each other. What several
sessions count at one moment they do not see of each other: a breaker may open one settlement late. Probes, of which
there are few, are looked at one after the other. Which of them turns it is decided by the row of the breaker, which
names its last change.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.domain.breaker import (
    TURNS,
    Breaker,
    BreakerEvent,
    BreakerState,
    BreakerTurn,
    Counted,
    failed,
    state_at,
)
from perdure.domain.limits import BREAKER_WINDOW_MAX_US
from perdure.domain.policy import SYSTEM
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.errors import Invalid
from perdure.store.ledger import Settled, Settling
from perdure.store.relational.acts import remember
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.views import BreakerView
from perdure.store.wakeups import Topic

KEPT_US = 2 * BREAKER_WINDOW_MAX_US
"""So long outcomes are kept."""

_decode = msgspec.json.Decoder(Breaker).decode
_Owner = tuple[str, str]
"""Organization and kind."""


class Ended(NamedTuple):
    """An attempt of a kind that has a breaker. `breaker` is JSON, as the kind's document says it."""

    organization: str
    kind: str
    leased_us: int
    breaker: str
    state: TaskState | None
    sent: Settlement


def count_outcomes(tx: Transaction, ended: Sequence[Ended]) -> list[BreakerTurn]:
    """Count how attempts have ended, and turn the breakers for which that is enough. Returns those."""
    found = {each.breaker: _understood(each.breaker) for each in ended}
    rows = []
    breakers: dict[_Owner, Breaker] = {}
    failing = set()
    for each in ended:
        breaker, bad = found[each.breaker], failed(each.state, each.sent)
        if breaker is None or bad is None:
            continue
        breakers[each.organization, each.kind] = breaker
        failing |= {each[:2]} if bad else set()
        begin_us = tx.now_us - breaker.window_us
        rows.append((each.organization, each.kind, breaker.bucket_us(tx.now_us), begin_us, each.leased_us, bad))
    if not rows:
        return []
    turns = []
    for organization, kind, since_us, until_us, counted in sorted(tx.run("outcome_count", batch=batch(rows))):
        # What has succeeded opens nothing.
        if counted is not None and (until_us is not None or (organization, kind) in failing):
            standing = _Standing(since_us, until_us, Counted(*msgspec.json.decode(counted)))
            turn = _judged(tx, (organization, kind), breakers[organization, kind], standing)
            turns += [turn] if turn is not None else []
    return turns


def _understood(said: str) -> Breaker | None:
    try:
        return _decode(said)
    except (msgspec.MsgspecError, Invalid):
        # A kind whose document is no good is ignored where it is read, and must not keep attempts from ending.
        return None


class _Standing(NamedTuple):
    since_us: int
    until_us: int | None
    counted: Counted


def _judged(tx: Transaction, owner: _Owner, breaker: Breaker, standing: _Standing) -> BreakerTurn | None:
    state = state_at(standing.until_us, tx.now_us)
    counted = standing.counted
    event = breaker.judge(state, counted)
    if event is None and state is BreakerState.HALF_OPEN:
        counted = _with_others(tx, owner, standing)
        event = breaker.judge(state, counted)
    if event is None:
        return None
    opens_us = breaker.open_us if TURNS[state, event] is BreakerState.OPEN else None
    return _turn(tx, owner, event, opens_us, counted, SYSTEM, standing.since_us)


def _with_others(tx: Transaction, owner: _Owner, standing: _Standing) -> Counted:
    """What is counted of probes once those that are settled beside this are committed. Those that succeed at one moment
    would else each see too few, and nobody closed the breaker before more have been tried. They are few: they may wait.
    """
    place = {"organization": owner[0], "kind": owner[1], "expected": standing.since_us}
    if not tx.run("breaker_take", **place):
        return standing.counted
    return Counted(*tx.run("outcome_total", **place)[0])


def trip(tx: Transaction, organization: str, kind: str, open_us: int, actor: str) -> BreakerTurn:
    """Open a breaker by hand."""
    return _certain(_turn(tx, (organization, kind), BreakerEvent.TRIP, open_us, Counted(0, 0), actor))


def reset(tx: Transaction, organization: str, kind: str, actor: str) -> BreakerTurn:
    """Close a breaker by hand, and begin a new count."""
    return _certain(_turn(tx, (organization, kind), BreakerEvent.RESET, None, Counted(0, 0), actor))


def _certain(turn: BreakerTurn | None) -> BreakerTurn:
    if turn is None:
        raise AssertionError("what asks for no last change changes a breaker in any case")
    return turn


def _turn(
    tx: Transaction,
    owner: _Owner,
    event: BreakerEvent,
    open_us: int | None,
    counted: Counted,
    actor: str,
    expected: int | None = None,
) -> BreakerTurn | None:
    """Turn a breaker whose last change is the expected one; `None` where somebody else was faster."""
    organization, kind = owner
    rows = tx.run(
        "breaker_turn",
        organization=organization,
        kind=kind,
        open_us=open_us,
        attempts=counted.attempts,
        failures=counted.failures,
        event=event,
        actor=actor,
        expected=expected,
    )
    if not rows:
        return None
    ((until_us,),) = rows
    state = BreakerState.CLOSED if open_us is None else BreakerState.OPEN
    facts = {"kind": kind, "event": event, "attempts": counted.attempts, "failures": counted.failures}
    remember(tx, organization, f"breaker_{state}", actor, [{**facts, "until_us": until_us}])
    # Workers ask again where they may begin; the duty that tells when its time has come learns of that time.
    tx.announce(Topic.READY | Topic.DUE)
    return BreakerTurn(organization, kind, state, event, counted, until_us)


def tell(tx: Transaction) -> int:
    """Tell workers of breakers that let probes through from now on. Returns how many."""
    rows = tx.run("breaker_tell")
    if rows:
        tx.announce(Topic.READY)
    return len(rows)


def forget(tx: Transaction, count: int) -> None:
    """Remove at most `count` outcomes that nobody looks at any more."""
    tx.run("outcome_remove", before=tx.now_us - KEPT_US, count=count)


def breakers(tx: Transaction, organization: str) -> list[BreakerView]:
    """The breakers of an organization's kinds, by kind."""
    return [_view(row, tx.now_us) for row in tx.document("view_breakers", organization=organization)]


def _view(row: Sequence[Any], now_us: int) -> BreakerView:
    kind, said, since_us, until_us, attempts, failures, trips, event, actor, outcomes = row
    breaker = msgspec.convert(said, Breaker)
    state = state_at(until_us, now_us)
    # While it is open, what is counted since is all about its probes.
    begin_us = now_us - breaker.window_us if state is BreakerState.CLOSED else 0
    seen = [each for each in outcomes if each[0] > begin_us]
    return BreakerView(
        kind=kind,
        state=state,
        since_us=since_us,
        until_us=until_us,
        attempts=sum(each[1] for each in seen),
        failures=sum(each[2] for each in seen),
        trips=trips,
        last_event=None if event is None else BreakerEvent(event),
        last_attempts=attempts,
        last_failures=failures,
        actor=actor,
    )


Watched = tuple[str, str, int, str]
"""An attempt of a kind that has a breaker: organization, kind, when it was leased, and the breaker."""


def settled(
    tx: Transaction, answers: list[Settled], settlings: Sequence[Settling], ended: Mapping[int, Watched]
) -> None:
    """Count attempts of kinds with a breaker that were ended, by place. Where that turns one, an answer tells it."""
    places = [place for place in ended if answers[place].state is not None]
    counted = [Ended(*ended[place], answers[place].state, settlings[place].settlement) for place in places]
    for turn in count_outcomes(tx, counted):
        place = next(place for place in reversed(places) if ended[place][:2] == (turn.organization, turn.kind))
        answers[place] = answers[place]._replace(turned=turn)
