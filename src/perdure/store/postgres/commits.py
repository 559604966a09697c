"""Runs what has gathered as transactions on one connection. Used by whoever has its turn."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import psycopg
from psycopg.errors import LockNotAvailable

from perdure.ambient import SystemClock
from perdure.domain.limits import SECOND_US
from perdure.errors import invariant
from perdure.flush import Call, grouped, merged, share
from perdure.store.postgres.clock import Reckoned, StoreClock
from perdure.store.postgres.faults import DATA_FAULTS, is_store_fault, translate
from perdure.store.postgres.held_up import HELD_PAUSE_SECONDS, HeldUp
from perdure.store.postgres.lifeline import Lifeline
from perdure.store.postgres.session import Session
from perdure.store.postgres.transaction import Reached, Transaction
from perdure.store.postgres.wire import Answer
from perdure.store.relational.isolating import Blame, commit, own
from perdure.store.relational.operation import Lone, Operation
from perdure.store.wakeups import Topic

REFUSED_PAUSE_US = SECOND_US
"""After a statement by itself that wrote nothing, as where there are depths to look at, none is sent for so long."""


class Announcing(Protocol):
    """Who tells what a commit has changed."""

    def turn(self, topics: Topic) -> str | None:
        """The text to announce right behind the commit; `None` where somebody else will, or nobody."""

    def committed(self, topics: Topic, *, told: bool) -> None:
        """The commit is done. `told`: the other processes were told behind it."""


class Quiet:
    """Tells nobody."""

    def turn(self, topics: Topic) -> str | None:
        """Nothing."""
        return None

    def committed(self, topics: Topic, *, told: bool) -> None:
        """Nobody is told."""


class Commits:
    """How a flush is run on a connection that writes: by its thread and, in the session's turn, by callers' loops."""

    def __init__(
        self, lifeline: Lifeline, clock: StoreClock, announcing: Announcing, place: str, patience: float
    ) -> None:
        self.lifeline = lifeline
        self._clock = clock
        self._announcing = announcing
        self._held = HeldUp(patience)
        self._monotonic_us = SystemClock().monotonic_us
        self._alone_from_us = 0
        self._blame = Blame(
            # A lock that others hold keeps back who needs it, and nobody else.
            is_store_fault=lambda error: is_store_fault(error) and not isinstance(error, LockNotAvailable),
            is_data_fault=lambda error: isinstance(error, DATA_FAULTS),
            translate=lambda error: translate(error, place),
        )

    def flush(self, calls: Sequence[Call]) -> None:
        """Run the calls and give each its answer. Raises nothing: every failure is some call's answer."""
        self._held.sift(self._flush(calls))
        while self.held_up:
            self.lifeline.pause(HELD_PAUSE_SECONDS)
            self.finish(turns=1)

    @property
    def held_up(self) -> bool:
        """Whether calls without an answer wait for a lock."""
        return bool(self._held.calls)

    def attempt(self, calls: Sequence[Call]) -> list[Call]:
        """Run the calls, and those whose turn it is again; return the ones that have their answer now.

        What needs a lock that others hold is kept for a later attempt, until its patience is over. Raises nothing.
        """
        return self._held.sift(self._flush([*calls, *self._held.take_due()]))

    def finish(self, turns: int | None = None) -> list[Call]:
        """Try what waits for a lock, at most so many times, and return what has its answer then. Raises nothing."""
        answered: list[Call] = []
        while self.held_up and turns != 0:
            answered += self._held.sift(self._flush(self._held.take()))
            turns = None if turns is None else turns - 1
        return answered

    def _flush(self, calls: Sequence[Call]) -> Sequence[Call]:
        if not calls:
            return calls
        try:
            commit(grouped(calls), self._held.bounded(self._transact), self._blame)
        except Exception as error:
            translated = self._blame.translate(error)
            for call in calls:
                if not call.answered:
                    call.error = own(translated)
        return calls

    def do(self, operation: Operation, item: Any) -> Any:
        """Run one item by itself and return its result. Raises what went wrong."""
        call = Call(operation, [item])
        self.flush([call])
        if call.error is not None:
            raise call.error
        return (call.results or [None])[0]

    def send(self, call: Call, watch: Callable[[int], None], tell: Callable[[], None]) -> bool:
        """Send the one item of a call as a statement that commits by itself, without waiting for anything.

        `watch` is called first, with the descriptor that will become readable, and `tell`, on any thread, when the call
        has its answer, or has none and has to go another way. Returns whether that is a way for the call; it is none
        either when this or `watch` raises something.
        """
        alone = call.operation.lone
        with self.lifeline.at_rest() as session:
            if alone is None or session is None or not session.sends or self._monotonic_us() < self._alone_from_us:
                return False
            reckoned = self._clock.reckoned(session.server_start_us)
            lone = None if reckoned is None else alone(call.items, reckoned.now_us)
            if reckoned is None or lone is None:
                return False
            statement = session.dialect.statements[lone.statement]
            hint: str | None = None

            def turn() -> str | None:
                nonlocal hint
                hint = self._announcing.turn(lone.topics)
                return hint

            def told(answer: Answer | psycopg.Error) -> None:
                try:
                    self._came(call, lone, reckoned, answer, told=hint is not None)
                finally:
                    tell()

            watch(session.connection.fileno())
            session.send((statement, [lone.bindings[name] for name in statement.names]), turn, told)
            return True

    def _came(self, call: Call, lone: Lone, reckoned: Reckoned, answer: Answer | psycopg.Error, *, told: bool) -> None:
        """What came of a statement that was sent by itself; `told`: with a hint behind it."""
        rows = answer.rows if isinstance(answer, Answer) else None
        if rows:
            written, server_us = rows[0]
            self._clock.showed(server_us, reckoned)
            if written:
                call.results = [lone.result]
                self._announcing.committed(lone.topics, told=told)
        if call.results is None:
            self._alone_from_us = self._monotonic_us() + REFUSED_PAUSE_US

    def look(self) -> bool:
        """Read what has come of what was sent, without waiting. False where somebody else uses the session just now."""
        with self.lifeline.at_rest() as session, contextlib.suppress(psycopg.Error):
            if session is not None:
                session.wire.look()
                return True
        return False

    def close(self) -> None:
        """Let go of the connection."""
        self.lifeline.close()

    def _transact(self, groups: list[list[Call]]) -> None:
        durable = any(group[0].operation.durable for group in groups)
        gates: set[int] = set()

        def run(session: Session) -> tuple[Transaction, list[list[Any]], bool]:
            tx = self._clock.begin(session, durable=durable)
            try:
                tx.begin_with(gates)
                answers = [_apply(tx, group) for group in groups]
            except Reached as reached:
                gates.update(reached.gates)
                raise
            self._clock.note(tx, session.server_start_us)
            tx.begin()
            hint = self._announcing.turn(tx.topics) if tx.topics and not session.pooled else None
            session.commit(hint)
            return tx, answers, hint is not None

        self._conclude(*self.lifeline.run(run), groups)

    def _conclude(self, tx: Transaction, answers: list[list[Any]], told: bool, groups: list[list[Call]]) -> None:
        """The transaction has committed: from here on nothing may make it run again."""
        for group, results in zip(groups, answers, strict=True):
            share(group, results)
        try:
            tx.committed()
        except Exception as error:
            # Callers resend after an unknown outcome and are answered from what is stored.
            for group in groups:
                for call in group:
                    call.error = own(error)
        if tx.topics:
            self._announcing.committed(tx.topics, told=told)


def _apply(tx: Transaction, group: list[Call]) -> list[Any]:
    operation = group[0].operation
    items = merged(group)
    results: list[Any] = operation.apply(tx, items)
    invariant(len(results) == len(items), f"{operation.name} gives one result for each item")
    return results
