"""Hints to and from other processes, by NOTIFY and LISTEN on a connection and a thread of their own.

What a commit announces is sent afterwards, off the path of the commit, because announcing takes a lock that all
announcers of the server share; what gathers meanwhile travels as one. Only topics travel, never what happened.
"""

import contextlib
import logging
import os
import select
import threading

from perdure.ambient import Clock, Entropy, SystemClock
from perdure.joining import join
from perdure.store.hub import Hub, HubSubscription
from perdure.store.postgres.conversation import Conversation
from perdure.store.postgres.forking import Inheritance
from perdure.store.postgres.talking import Talker
from perdure.store.postgres.watching import Watches
from perdure.store.wakeups import Topic

SEND_EVERY_US = 5_000
"""Announcements of one process are at least so far apart."""


_log = logging.getLogger("perdure.store")


class Line:
    """The line to the other processes, with a thread that begins when first somebody tells or waits.

    Without a talker nothing is told or heard, and the waiters are told often to look for themselves.
    """

    def __init__(self, talker: Talker | None, inheritance: Inheritance, hub: Hub, clock: Clock | None = None) -> None:
        self._talker = talker
        self._inheritance = inheritance
        self._hub = hub
        self._monotonic_us = (clock or SystemClock()).monotonic_us
        self._closed = False
        self._bell: tuple[int, int] | None = None
        self._start_over()
        inheritance.in_child(self._start_over)
        hub.on_first(self.begin)

    def _start_over(self) -> None:
        """Begin without a thread: at first, and in a forked child, which has a copy of its parent's bell."""
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._take_down_the_bell()
        self._pending = Topic(0)
        self._sent_us = 0
        self._remind_us: int | None = None
        self.watches = Watches(self._monotonic_us)
        self._name = f"{Entropy().bits(48):012x}"
        self._talk: Conversation | None = None

    @property
    def complaint(self) -> str | None:
        """Why nothing is heard from other processes, while that is so."""
        return None if self._talk is None else self._talk.complaint

    def begin(self) -> None:
        """Hear what others announce from now on."""
        with self._guard:
            self._ring()

    def turn(self, topics: Topic) -> str | None:
        """What to announce, if whoever asks may do it now on a connection of its own. From any thread."""
        with self._guard:
            now_us = self._monotonic_us()
            if self._closed or self._talker is None or self._pending or now_us < self._sent_us + SEND_EVERY_US:
                return None
            self._sent_us = now_us
            return f"{self._name} {topics.value}"

    def watch(self, number: int) -> None:
        """Tell everybody when a transaction of a caller's is over. From any thread."""
        if self._talker is None:
            return
        self.watches.add(number)
        with self._guard:
            self._ring()

    def remind(self, delay_us: int) -> None:
        """Tell this process's waiters after so long that there may be something to claim. From any thread."""
        with self._guard:
            due_us = self._monotonic_us() + delay_us
            if self._remind_us is None or due_us < self._remind_us:
                self._remind_us = due_us
                self._ring()

    def tell(self, topics: Topic) -> None:
        """Announce to the other processes, soon, if there is a way to. From any thread."""
        if self._talker is None:
            return
        with self._guard:
            ring = not self._pending
            self._pending |= topics
            if ring:
                self._ring()

    def _ring(self) -> None:
        if self._thread is None:
            if self._closed:
                return
            self._bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._run, args=self._bell[:1], name="perdure-wakeups", daemon=True)
            self._thread.start()
        if self._bell is not None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._bell[1], b".")

    def _take_down_the_bell(self) -> None:
        # First the note of it: a child that is forked in between must not close what has these numbers by then.
        bell, self._bell = self._bell, None
        for end in bell or ():
            os.close(end)

    def _run(self, bell: int) -> None:
        talk = self._talk = Conversation(
            self._talker, self._inheritance, self._hub, self._monotonic_us, self._name, self.watches.add
        )
        while not self._closed:
            try:
                now_us = self._monotonic_us()
                if self._pending and now_us >= self._sent_us + SEND_EVERY_US and talk.connected(now_us):
                    self._sent_us = now_us
                    self._send(talk)
                self._remind_if_time(now_us)
                self._look_at(talk, self.watches.due(now_us))
                talk.keep(now_us)
                self._wait(bell, talk.descriptors(), self._due_us(talk))
                talk.hear()
            except Exception as error:
                # Whatever it is: without this thread nothing would be heard or told any more.
                _log.exception("the line to the other processes failed; it is opened anew")
                talk.fail(error)
                self._wait(bell, [], talk.retry_us)
        self._hang_up(talk)

    def _look_at(self, talk: Conversation, numbers: list[int]) -> None:
        """Announce what transactions of callers have submitted, if any of these is over."""
        if not numbers or not talk.connected(self._monotonic_us()):
            return
        ended = talk.ended(numbers)
        if ended is not None and self.watches.looked(numbers, ended):
            self._hub.announce(Topic.READY | Topic.DUE)
            with self._guard:
                self._pending |= Topic.READY | Topic.DUE

    def _remind_if_time(self, now_us: int) -> None:
        with self._guard:
            if self._remind_us is None or now_us < self._remind_us:
                return
            self._remind_us = None
        self._hub.announce(Topic.READY)

    def _hang_up(self, talk: Conversation) -> None:
        try:
            self._look_at(talk, self.watches.open())
            if self._pending and talk.connected(self._monotonic_us()):
                self._send(talk)
            for number in self.watches.open():
                talk.hand_over(number)
            talk.close()
        finally:
            with self._guard:
                self._thread = None
                self._take_down_the_bell()

    def _send(self, talk: Conversation) -> None:
        with self._guard:
            topics, self._pending = self._pending, Topic(0)
        if not talk.say(topics):
            with self._guard:
                self._pending |= topics

    def _due_us(self, talk: Conversation) -> int:
        """When there is something to do, if nothing comes before."""
        due_us = talk.due_us()
        if self._pending:
            due_us = min(due_us, max(self._sent_us + SEND_EVERY_US, talk.retry_us))
        if (look_us := self.watches.due_us) is not None:
            due_us = min(due_us, max(look_us, talk.retry_us))
        return due_us if self._remind_us is None else min(due_us, self._remind_us)

    def _wait(self, bell: int, descriptors: list[int], due_us: int) -> None:
        """Until the bell rings, something can be read from a descriptor, or it is time."""
        waiting = select.poll()
        for descriptor in (bell, *descriptors):
            waiting.register(descriptor, select.POLLIN)
        waiting.poll(max(0, due_us - self._monotonic_us() + 999) // 1_000)
        with contextlib.suppress(BlockingIOError):
            os.read(bell, 4_096)

    async def close(self) -> None:
        """Send what is to be sent and end the thread. Harmless when closed already."""
        with self._guard:
            # First this, then the bell: the thread may look before the bell is heard.
            self._closed = True
            self._ring()
            thread = self._thread
        if thread is not None:
            await join(thread)


class PostgresWakeups:
    """Meets `perdure.store.wakeups.Wakeups`. Without a line, hints stay within this process."""

    def __init__(self, hub: Hub, line: Line | None) -> None:
        self._hub = hub
        self._line = line

    def subscribe(self, topics: Topic) -> HubSubscription:
        """A waiter for some topics, on the running event loop."""
        return self._hub.subscribe(topics)

    def announce(self, topics: Topic) -> None:
        """Wake this process's waiters, and those of the other processes. Callable from any thread."""
        self._hub.announce(topics)
        if self._line is not None:
            self._line.tell(topics)

    def turn(self, topics: Topic) -> str | None:
        """What to announce behind a commit, where that is not left to the line."""
        return None if self._line is None else self._line.turn(topics)

    def watch(self, number: int) -> None:
        """Tell everybody when a transaction of a caller's is over. Callable from any thread."""
        if self._line is not None:
            self._line.watch(number)

    def remind(self, delay_us: int) -> None:
        """Wake this process's waiters for claims after so long."""
        if self._line is not None:
            self._line.remind(delay_us)

    def committed(self, topics: Topic, *, told: bool) -> None:
        """Wake this process's waiters, and those of the others if they have not been told."""
        self._hub.announce(topics)
        if self._line is not None and not told:
            self._line.tell(topics)

    def notices(self) -> list[str]:
        """What whoever runs the store should know of: a sentence each."""
        complaint = None if self._line is None else self._line.complaint
        return [] if complaint is None else [complaint]

    async def close(self) -> None:
        """Send what is to be sent, and hear no more."""
        if self._line is not None:
            await self._line.close()
