"""The session of one thread, opened anew when it has broken, and transactions that are run until they are through.

A transaction whose connection breaks is run again once the server is back, also when it broke during the commit and
nobody knows what became of it: all ids in a write are chosen before it, so that doing it again changes nothing and
gives the same answers. Its callers wait for that no longer than `PATIENCE_SECONDS`. While the server stays away, later
calls are not held up: each tries once, and fails at once.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg

from perdure.ambient import Chance, Clock, SystemClock
from perdure.domain import limits
from perdure.errors import PerdureError, StoreBusy
from perdure.store.postgres.connecting import Connector, worth_waiting
from perdure.store.postgres.faults import RETRIED, is_of_session
from perdure.store.postgres.forking import Inheritance
from perdure.store.postgres.session import Session

T = TypeVar("T")

PATIENCE_SECONDS = 5.0
"""How long a call waits for a server that has gone away: as long as the shortest lease."""
RETRIES_MAX = 12
"""How often a transaction that collided with others is run again."""
RETRY_PAUSE_MS = 2.0
RETRY_PAUSE_MAX_MS = 200.0
RECONNECT_PAUSE_SECONDS = 0.1
IDLE_SECONDS = 10
"""A session that nobody has used for so long is closed, unless it is the only one."""
CROWDED_SECONDS = 2
"""How long a thread that got no session does with another's before it asks for one again."""

_log = logging.getLogger("perdure.store")


class Crowded(Exception):
    """The server has no session left, and `lender` has one to share."""

    def __init__(self, lender: "Lifeline") -> None:
        super().__init__()
        self.lender = lender


class Company:
    """The lifelines of one store, which share their sessions where the server has too few."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._members: list[Lifeline] = []
        self._lacking: set[Lifeline] = set()
        self._tidy_us = 0

    def forget(self) -> None:
        """In a forked child: its members come again, those of the parent are not its own."""
        self._members, self._lacking = [], set()

    def join(self, member: "Lifeline") -> None:
        """Let a lifeline lend and borrow."""
        self._members.append(member)

    def lender(self, borrower: "Lifeline") -> "Lifeline | None":
        """Somebody with a session; `None` when nobody has one."""
        return next((each for each in self._members if each is not borrower and each.lends), None)

    def idle(self, borrower: "Lifeline", patience: float) -> "Lifeline | None":
        """Somebody with a session that nobody uses: its turn is taken, the borrower gives it back."""
        lenders = [each for each in self._members if each is not borrower and each.lends]
        for lender in lenders:
            if lender.take_turn(0.0):
                return lender
        if lenders and patience and lenders[0].take_turn(patience):
            return lenders[0]
        return None

    def tidy(self, now_us: int) -> None:
        """Close sessions that nobody has used for long, except that of the first member."""
        if now_us >= self._tidy_us:
            self._tidy_us = now_us + limits.SECOND_US
            for each in self._members[1:]:
                each.close_if_idle(now_us)

    def lacks(self, member: "Lifeline") -> None:
        """Note, and say once for each, that there are too few sessions."""
        if member not in self._lacking:
            self._lacking.add(member)
            _log.warning("%s; they share the others and are slower: raise max_connections", self._told())

    def is_short_for(self, member: "Lifeline") -> bool:
        """Whether the server had no session left when this one last asked."""
        return member in self._lacking

    def has(self, member: "Lifeline") -> None:
        """Note that somebody who had none has a session of its own."""
        if member in self._lacking:
            self._lacking.discard(member)
            if not self._lacking:
                _log.info("%s has connections again", self._place)

    def notices(self) -> list[str]:
        """What whoever runs the store should know of."""
        return [self._told()] if self._lacking else []

    def _told(self) -> str:
        return f"{self._place} has no connection left for {len(self._lacking)} of this process's threads"


class Lifeline:
    """Of one thread, which shares it with others while it does not need it. `stop` ends all waiting.

    Who has no session uses that of another while it is idle; `shares_after` says how many seconds it waits for one to
    become so before it opens its own. That is closed again when it has not been used for `IDLE_SECONDS`.
    """

    def __init__(
        self,
        connector: Connector,
        inheritance: Inheritance,
        stop: threading.Event,
        company: "Company",
        *,
        patience: float = PATIENCE_SECONDS,
        shares_after: float = 0.0,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        self._connector = connector
        self._inheritance = inheritance
        self._stop = stop
        self._patience_us = round(patience * limits.SECOND_US)
        self._monotonic_us = (clock or SystemClock()).monotonic_us
        self._chance = chance or Chance()
        self._company = company
        self._turn = threading.RLock()
        """Held while the session is used."""
        self._crowded_until_us = 0
        """Until then this uses the session of another, for the server had none left."""
        self._session: Session | None = None
        self._shares_after_seconds = shares_after
        self._used_us = 0
        """When the session was used last."""
        self._away = False
        """Whether a call has waited in vain since the server was last there."""

    def adopt(self, session: Session) -> None:
        """Use this session."""
        self._session = session
        self._inheritance.admit(session.connection)

    def abandon(self) -> None:
        """In a forked child: the session was the parent's, and so was whoever used it."""
        self._session = None
        self._turn = threading.RLock()
        self._company.join(self)

    @property
    def lends(self) -> bool:
        """Whether there is a session for others to use."""
        session = self._session
        return session is not None and not session.broken

    def take_turn(self, seconds: float) -> bool:
        """Take the session, if that is possible by then and there is one: who has it calls `_turn.release`."""
        taken = self._turn.acquire(timeout=seconds) if seconds else self._turn.acquire(blocking=False)
        if taken and not self.lends:
            self._turn.release()
            return False
        return taken

    @contextlib.contextmanager
    def at_rest(self) -> Iterator[Session | None]:
        """The session for a moment, if there is one that nobody uses just now. Nothing waits in there."""
        if not self.take_turn(0.0):
            yield None
            return
        try:
            self._used_us = self._monotonic_us()
            yield self._session
        finally:
            self._turn.release()

    def settle(self) -> None:
        """Read what was sent on the session and has not been answered yet."""
        with self._turn, contextlib.suppress(psycopg.Error):
            if self._session is not None:
                self._session.wire.settle()

    def close_if_idle(self, now_us: int) -> None:
        """Let go of a session that has not been used for long."""
        if self.lends and now_us >= self._used_us + IDLE_SECONDS * limits.SECOND_US and self.take_turn(0.0):
            try:
                self.close()
            finally:
                self._turn.release()

    def run(self, transaction: Callable[[Session], T]) -> T:
        """What `transaction` returns, which begins and commits on the session. It may be run several times."""
        crowded = self._monotonic_us() < self._crowded_until_us
        # Who got none asks for one again after a while, or nobody would know that there are more.
        if self._session is None and (crowded or not self._company.is_short_for(self)):
            lender = self._company.idle(self, self._shares_after_seconds)
            if lender is not None:
                try:
                    return lender._run(transaction)
                finally:
                    lender._turn.release()
        if self._session is None and self._monotonic_us() < self._crowded_until_us:
            lender = self._company.lender(self)
            if lender is not None:
                return lender.run(transaction)
        try:
            with self._turn:
                return self._run(transaction)
        except Crowded as crowded:
            self._crowded_until_us = self._monotonic_us() + CROWDED_SECONDS * limits.SECOND_US
            self._company.lacks(self)
            return crowded.lender.run(transaction)

    def _run(self, transaction: Callable[[Session], T]) -> T:
        deadline_us = self._monotonic_us() + (0 if self._away else self._patience_us)
        collisions = 0
        while True:
            session = self._connected(deadline_us)
            try:
                result = transaction(session)
            except BaseException as error:
                session.roll_back()
                if not isinstance(error, Exception):
                    raise
                if session.broken or is_of_session(error):
                    self.close()
                    self._wait_or_raise(error, deadline_us)
                elif isinstance(error, RETRIED) and collisions < RETRIES_MAX:
                    collisions += 1
                    self._pause(collisions)
                else:
                    raise
            else:
                self._away = False
                self._used_us = self._monotonic_us()
                self._company.tidy(self._used_us)
                return result

    def _connected(self, deadline_us: int) -> Session:
        while self._session is None:
            try:
                self.adopt(self._connector.connect())
                self._company.has(self)
            except PerdureError as error:
                if not worth_waiting(error):
                    raise
                lender = self._company.lender(self) if isinstance(error, StoreBusy) else None
                if lender is not None:
                    raise Crowded(lender) from error
                self._wait_or_raise(error, deadline_us)
        return self._session

    def _wait_or_raise(self, error: Exception, deadline_us: int) -> None:
        if self._monotonic_us() >= deadline_us or self._stop.is_set():
            self._away = True
            raise error
        self._stop.wait(RECONNECT_PAUSE_SECONDS * self._chance.uniform(0.5, 1.5))

    def pause(self, seconds: float) -> None:
        """Wait before a transaction is run again."""
        self._stop.wait(seconds)

    def _pause(self, collisions: int) -> None:
        most_ms = min(RETRY_PAUSE_MS * 2**collisions, RETRY_PAUSE_MAX_MS)
        self._stop.wait(self._chance.uniform(0, most_ms) / 1_000)

    def close(self) -> None:
        """Let go of the session. The next transaction opens another."""
        with self._turn:
            session, self._session = self._session, None
            if session is not None:
                self._inheritance.dismiss(session.connection)
                session.close()
