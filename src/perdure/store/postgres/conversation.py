"""The connection by which this process tells others that something changed, and hears it from them. Of one thread.

Hints can be lost: a connection breaks, or a pooler lends each transaction another session. So whoever listens announces
to itself now and then. While that does not arrive, or no connection is had, this process's waiters are told often to
look for themselves, and now and then in good times too.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from msgspec import json

from perdure.domain.limits import SECOND_US
from perdure.errors import PerdureError
from perdure.store.hub import Hub
from perdure.store.postgres.faults import told
from perdure.store.postgres.forking import Inheritance
from perdure.store.postgres.statements import STATEMENTS
from perdure.store.postgres.talking import Talker
from perdure.store.wakeups import Topic

PROBE_EVERY_US = 60 * SECOND_US
PROBE_ANSWER_US = 2 * SECOND_US
"""How often a listener announces to itself, and how long that may take to arrive."""
SAFETY_FIRST_US = 60 * SECOND_US
SAFETY_LAST_US = 300 * SECOND_US
DEAF_EVERY_US = SECOND_US // 4
"""How often waiters are told to look for themselves: while hints arrive, less and less often, and while they do not."""
SAFETY = Topic.READY | Topic.ENDED
"""What may have been missed where hints arrive: the death of whoever should have told. Workers and duties look by
themselves, and more often.
"""
RECONNECT_EVERY_US = SECOND_US // 2
_LONG_AGO_US = -(1 << 62)
"""Before any reading of a clock that began with the machine."""

_LISTEN = STATEMENTS["wakeup_listen"].text
_NOTIFY = STATEMENTS["wakeup_notify"].text
_ENDED = STATEMENTS["caller_ended"].text
_PROBE = "probe"
_WATCH = "watch "
_LOST_IN_POOLER = (
    "a pooler between this process and the server loses announcements; name the server itself in PERDURE_HINTS"
)

_log = logging.getLogger("perdure.store")


class Conversation:
    """`name` tells this process's own announcements from those of others. `watch` is told the numbers of transactions
    that another process watched until it ended.
    """

    def __init__(
        self,
        talker: Talker | None,
        inheritance: Inheritance,
        hub: Hub,
        monotonic_us: Callable[[], int],
        name: str,
        watch: Callable[[int], None],
    ) -> None:
        self._watch = watch
        self._talker = talker
        self._inheritance = inheritance
        self._hub = hub
        self._monotonic_us = monotonic_us
        self._name = name
        self._connection: psycopg.Connection[Any] | None = None
        self._arrived: list[str] = []
        self._pooled = False
        """Whether a pooler lends sessions: announcing works through it, and listening would stay in a session."""
        self._listening = False
        self._hearing = False
        """Whether the last announcement to itself has arrived."""
        self._probed_us = 0
        self._waited_us = _LONG_AGO_US
        self._safety_us = SAFETY_FIRST_US
        self.complaint: str | None = None
        """Why nothing is heard from other processes, since that was so."""
        self.retry_us = 0
        """When to connect again after a failure."""

    def connected(self, now_us: int) -> bool:
        """Whether there is a connection now; one is made if it is time to try."""
        if self._connection is None and self._talker is not None and now_us >= self.retry_us:
            try:
                self._connection, self._pooled = self._talker.dial()
                self._connection.add_notify_handler(lambda each: self._arrived.append(each.payload))
                self._inheritance.admit(self._connection)
                if not self._hub.watched:
                    self.complaint = None
            except PerdureError as error:
                self.fail(error)
        return self._connection is not None

    def keep(self, now_us: int) -> None:
        """Do what is due: connect, listen, announce to itself, tell waiters to look for themselves."""
        if not self._hub.watched:
            return
        if not self.connected(now_us):
            self._tell_to_look(now_us, DEAF_EVERY_US)
            return
        if self._pooled:
            self._complain(_LOST_IN_POOLER)
            self._tell_to_look(now_us, DEAF_EVERY_US)
            return
        if not self._listening:
            self._listen(now_us)
        elif now_us >= self._probed_us + PROBE_EVERY_US:
            self._probe(now_us)
        elif not self._hearing and now_us >= self._probed_us + PROBE_ANSWER_US:
            self._complain(_LOST_IN_POOLER)
            self._disconnect()
            self.retry_us = now_us + PROBE_EVERY_US
        if self._hearing:
            self._tell_to_look(now_us, self._safety_us, SAFETY)
        else:
            self._tell_to_look(now_us, DEAF_EVERY_US)

    def _listen(self, now_us: int) -> None:
        if self._ask(_LISTEN):
            self._listening = True
            # Whatever was announced before has not been heard.
            self._tell_to_look(now_us, 0)
            self._safety_us = SAFETY_FIRST_US
            self._probe(now_us)

    def _probe(self, now_us: int) -> None:
        self._hearing = False
        self._probed_us = now_us
        self._ask(_NOTIFY, f"{self._name} {_PROBE}")
        self.hear()

    def _tell_to_look(self, now_us: int, every_us: int, topics: Topic = Topic.ANY) -> None:
        if now_us >= self._waited_us + every_us:
            self._waited_us = now_us
            self._safety_us = min(2 * self._safety_us, SAFETY_LAST_US)
            self._hub.announce(topics)

    def due_us(self) -> int:
        """When there is something to do at the latest."""
        if not self._hub.watched:
            return self._monotonic_us() + PROBE_EVERY_US
        look_us = self._waited_us + (self._safety_us if self._hearing else DEAF_EVERY_US)
        if self._talker is None:
            return look_us
        if self._connection is None:
            return min(look_us, self.retry_us)
        if self._pooled:
            return look_us
        return min(look_us, self._probed_us + (PROBE_EVERY_US if self._hearing else PROBE_ANSWER_US))

    def descriptors(self) -> list[int]:
        """What becomes readable when there is something to hear."""
        return [self._connection.fileno()] if self._connection is not None else []

    def say(self, topics: Topic) -> bool:
        """Announce. False when it could not be told."""
        return self._ask(_NOTIFY, f"{self._name} {topics.value}")

    def ended(self, numbers: Sequence[int]) -> list[int] | None:
        """Which of these transactions are over; `None` when that could not be asked."""
        if self._connection is None:
            return None
        try:
            rows = self._connection.execute(_ENDED, {"text": json.encode(numbers).decode()}, prepare=False).fetchall()
        except psycopg.OperationalError as error:
            self.fail(error)
            return None
        except psycopg.Error:
            # Another server than the one that had given the numbers.
            return list(numbers)
        return json.decode(rows[0][0], type=list[int])

    def hand_over(self, number: int) -> bool:
        """Have the others watch a transaction. False when it could not be told."""
        return self._ask(_NOTIFY, f"{self._name} {_WATCH}{number}")

    def hear(self) -> None:
        """Pass on what others have announced."""
        if self._connection is None:
            return
        # Not by waiting for the socket: what came along with an answer has been read from it already.
        wire = self._connection.pgconn
        try:
            wire.consume_input()
            while (each := wire.notifies()) is not None:
                self._arrived.append(each.extra.decode())
        except psycopg.Error as error:
            self.fail(error)
        heard = 0
        while self._arrived:
            heard |= self._understand(self._arrived.pop())
        if heard:
            self._safety_us = SAFETY_FIRST_US
            self._hub.announce(Topic(heard))

    def _understand(self, payload: str) -> int:
        name, _, topics = payload.partition(" ")
        if name == self._name:
            self._hearing = self._hearing or topics == _PROBE
            if self._hearing:
                self.complaint = None
            return 0
        if topics == _PROBE:
            return 0
        if topics.startswith(_WATCH):
            self._watch(int(topics.removeprefix(_WATCH)))
            return 0
        return int(topics) & Topic.ANY.value if topics.isdecimal() else Topic.ANY.value

    def _ask(self, statement: bytes, text: str = "") -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.execute(statement, {"text": text}, prepare=False)
        except psycopg.Error as error:
            self.fail(error)
            return False
        return True

    def fail(self, error: Exception) -> None:
        """Let go of the connection because of this error, say so, and try again a little later."""
        self._complain(told(error))
        self.close()
        self.retry_us = self._monotonic_us() + RECONNECT_EVERY_US

    def _complain(self, reason: str) -> None:
        if self.complaint is None:
            self.complaint = f"no hints from other processes: {reason}; until they arrive, waiters look for themselves"
            _log.warning("%s", self.complaint)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._listening = self._hearing = False
        if connection is not None:
            self._inheritance.dismiss(connection)
            connection.close()

    def close(self) -> None:
        """Let go of the connection."""
        with contextlib.suppress(psycopg.Error):
            self._disconnect()
