"""Claims of idle workers that travel with the commit which brings them work.

An idle worker whose own event loop commits a task would be told of it, would claim, and would wait for a second
transaction. Its claim stands by instead, and that commit takes it along.
"""

import asyncio
from collections.abc import Callable

from perdure.flush import Call
from perdure.store.relational.operation import StandBy
from perdure.store.wakeups import Subscription


class Along:
    """What one commit takes along, if it brings work."""

    __slots__ = ("_stand_by", "_standing", "applied", "call")

    def __init__(self, stand_by: StandBy, standing: "Standing") -> None:
        self.call = Call(stand_by.operation, [stand_by.item])
        self.applied = False
        """Whether it was part of a transaction that was to be committed, and may have been."""
        self._stand_by = stand_by
        self._standing = standing

    @property
    def sated(self) -> Subscription | None:
        """Who need not be told of the work: it has taken all that it may have."""
        results = self.call.results
        filled = results is None or len(results[0]) >= self._stand_by.room
        return None if filled else self._stand_by.taker.subscription

    def tell(self) -> None:
        """Tell whoever stands by what came of it. On its loop, once the commit has an answer."""
        if not self.applied:
            return
        if self.call.results is None:
            self._standing.withdraw(self._stand_by)
            self._stand_by.taker.failed()
        elif self.call.results[0]:
            self._standing.withdraw(self._stand_by)
            self._stand_by.taker.taken(self.call.results[0])
        else:
            self._standing.pass_by(self._stand_by)
            self._stand_by.taker.passed_by()


class Standing:
    """Who stands by in this process."""

    def __init__(self) -> None:
        self._waiting: list[StandBy] = []

    def add(self, stand_by: StandBy) -> Callable[[], None]:
        """Let it stand by. Returns what withdraws it."""
        self._waiting.append(stand_by)
        return lambda: self.withdraw(stand_by)

    def withdraw(self, stand_by: StandBy) -> None:
        """Let it stand by no more. Harmless when it does not."""
        self._waiting = [each for each in self._waiting if each is not stand_by]

    def pass_by(self, stand_by: StandBy) -> None:
        """It is the turn of others, if there are any."""
        if len(self._waiting) > 1:
            self.withdraw(stand_by)
            self._waiting.append(stand_by)

    def here(self) -> Along | None:
        """What a commit on the running event loop takes along: the one that has stood by longest."""
        if not self._waiting:
            return None
        loop = asyncio.get_running_loop()
        for each in self._waiting:
            if each.loop is loop:
                each.taker.begun()
                return Along(each, self)
        return None
