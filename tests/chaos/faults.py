"""Faults that a process of these cases does to itself, as its environment says."""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from perdure.ambient import SystemClock
from perdure.flush import Call
from perdure.store.relational.ledger import RelationalLedger
from perdure.store.sqlite.store import SqliteStore
from perdure.worker.lease_keeper import LeaseKeeper

DIE = "CHAOS_DIE"
"""`verb:point:nth`: end at the nth call of the ledger's verb, at one of `POINTS`."""
WALL = "CHAOS_WALL"
"""`seconds@after`: the wall clock steps by so many seconds, so long after the start."""
UNFENCED = "CHAOS_UNFENCED"
"""The worker never stops itself when it has lost a lease: only the store stands in its way."""
SYNCHRONOUS = "CHAOS_SYNCHRONOUS"
"""Replaces the durability of the store, to show that a case notices."""

STORM = "CHAOS_STORM"
"""The part of all commits on PostgreSQL that collide, deadlock, or lose their connection before or after."""

DIED = 77
"""The exit code of a process that ended at its crash point."""
POINTS = ("before", "within", "committed", "answered")
"""Nothing sent; applied and not committed; committed and not answered; answered and not acted upon."""
WRITES = ("register", "heartbeat", "claim", "renew", "report", "settle", "leave")
DUTIES = ("promote", "expire", "cascade", "fail_unroutable", "retain")
READS = ("control", "inputs", "facts", "find_doubtful", "now_us")
CLIENT = ("submit", "submit_jobs", "cancel", "redrive")


def do_as_told() -> None:
    """Prepare the faults that the environment asks for."""
    if DIE in os.environ:
        verb, point, nth = os.environ[DIE].split(":")
        _die_at(verb, point, int(nth))
    if WALL in os.environ:
        step, after = os.environ[WALL].split("@")
        _step_the_wall_clock(float(step), float(after))
    if UNFENCED in os.environ:
        LeaseKeeper._tell = lambda *_: None  # type: ignore[method-assign]
    if STORM in os.environ:
        _storm(float(os.environ[STORM]))
    if SYNCHRONOUS in os.environ:
        _open_with(os.environ[SYNCHRONOUS])


def _die_at(verb: str, point: str, nth: int) -> None:
    seen = _Countdown(nth)
    if point in ("before", "answered"):
        _wrap_verb(verb, point, seen)
    else:
        _wrap_commit(verb, point, seen)


class _Countdown:
    """Is true at the nth asking."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def over(self) -> bool:
        self._left -= 1
        return self._left == 0


def _die() -> None:
    os._exit(DIED)


def _wrap_verb(verb: str, point: str, seen: _Countdown) -> None:
    from perdure.store.postgres.ledger import PostgresLedger

    for kind in (RelationalLedger, PostgresLedger):
        if verb in vars(kind):
            _wrap_verb_of(kind, verb, point, seen)


def _wrap_verb_of(kind: type[RelationalLedger], verb: str, point: str, seen: _Countdown) -> None:
    original: Callable[..., Any] = vars(kind)[verb]

    async def dying(*args: Any, **kwargs: Any) -> Any:
        due = seen.over()
        if due and point == "before":
            _die()
        answer = await original(*args, **kwargs)
        if due:
            asyncio.get_running_loop().call_soon(_die)
        return answer

    setattr(kind, verb, dying)


def _wrap_commit(verb: str, point: str, seen: _Countdown) -> None:
    """`note` runs between the last statement and the COMMIT, `_conclude` after it and before any answer."""
    due: list[bool] = []

    def noticing(apply: Callable[..., Any]) -> Callable[..., Any]:
        def applied(*given: Any) -> Any:
            results = apply(*given)
            if _is_of(verb, given[-1]) and seen.over():
                due.append(True)
            return results

        return applied

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def before(*given: Any) -> Any:
            if due:
                _die()
            return original(*given)

        return before

    for clock, commits, applies in _commits():
        applies._apply = noticing(applies._apply)
        if point == "within":
            clock.note = dying(clock.note)
        else:
            commits._conclude = dying(commits._conclude)


def _commits() -> list[tuple[Any, Any, Any]]:
    """Of each store: its clock, what commits, and what has the function that applies an operation."""
    from perdure.store.postgres import clock as postgres_clock
    from perdure.store.postgres import commits as postgres_commits
    from perdure.store.sqlite import clock, commits

    return [
        (clock.StoreClock, commits.Commits, commits.Commits),
        (postgres_clock.StoreClock, postgres_commits.Commits, postgres_commits),
    ]


def _storm(rate: float) -> None:
    from psycopg import OperationalError
    from psycopg.errors import DeadlockDetected, SerializationFailure

    from perdure.store.postgres.session import Session

    commit, dice = Session.commit, random.Random(os.getpid())

    def commits(self: Session, hint: str | None = None) -> None:
        if dice.random() >= rate:
            commit(self, hint)
            return
        way = dice.choice(("collides", "deadlocks", "breaks before", "breaks after"))
        if way == "collides":
            raise SerializationFailure("could not serialize access (a fault of this test)")
        if way == "deadlocks":
            raise DeadlockDetected("deadlock detected (a fault of this test)")
        if way == "breaks after":
            commit(self, hint)
        self.close()
        raise OperationalError("the connection was lost (a fault of this test)")

    Session.commit = commits  # type: ignore[method-assign]


def _is_of(verb: str, group: Sequence[Call]) -> bool:
    """An operation is named for its verb, or is a function that was made inside of it."""
    if group[0].operation.name == verb:
        return True
    names = (getattr(item, "__qualname__", "") for call in group for item in call.items)
    return any(f".{verb}." in name for name in names)


def _step_the_wall_clock(step: float, after: float) -> None:
    wall_us, began_us = SystemClock.wall_us, SystemClock().monotonic_us()

    def stepped(self: SystemClock) -> int:
        passed = self.monotonic_us() - began_us >= after * 1_000_000
        return wall_us(self) + (round(step * 1_000_000) if passed else 0)

    SystemClock.wall_us = stepped  # type: ignore[method-assign]


def _open_with(synchronous: str) -> None:
    opened = SqliteStore.open

    async def less_durable(path: Any, **options: Any) -> SqliteStore:
        return await opened(path, **{**options, "synchronous": synchronous})

    SqliteStore.open = less_durable  # type: ignore[method-assign, assignment]
