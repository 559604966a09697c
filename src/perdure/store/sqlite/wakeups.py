"""Hints that something may have changed: within this process by its hub, from other processes by a look at the file.

The look is `PRAGMA data_version` on the connection that writes, done by the writer's thread when it has nothing else to
do: that number changes when another connection has committed and never by own commits, so nobody is woken twice.
"""

from collections.abc import Callable
from typing import Any

import apsw

from perdure.domain.limits import SECOND_US, seconds
from perdure.store.hub import Hub
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.wakeups import Topic

_DATA_VERSION = STATEMENTS["transaction_data_version"]

LOOK_HOT_US = 5_000
LOOK_WARM_US = 20_000
LOOK_IDLE_US = 40_000
HOT_FOR_US = 5 * SECOND_US
WARM_FOR_US = 60 * SECOND_US
"""How often to look: right after a change, within a minute of one, and else. Each look costs about 50 us of a core."""


class ForeignChanges:
    """Notices commits of other connections while somebody waits. Used by the writer's thread."""

    def __init__(self, hub: Hub, monotonic_us: Callable[[], int]) -> None:
        self._hub = hub
        self._monotonic_us = monotonic_us
        self._version: Any = None
        self._connection: apsw.Connection | None = None
        self._looked_us = 0
        self._changed_us = 0

    @property
    def watched(self) -> bool:
        """Whether anybody waits for what it may find."""
        return self._hub.watched

    def interval(self) -> float | None:
        """Seconds until the next look; `None` while nobody waits."""
        if not self._hub.watched:
            return None
        now_us = self._monotonic_us()
        wait_us = self._looked_us + self._pace_us(now_us) - now_us
        return seconds(wait_us) if wait_us > 0 else 0.0

    def _pace_us(self, now_us: int) -> int:
        quiet_us = now_us - self._changed_us
        if quiet_us < HOT_FOR_US:
            return LOOK_HOT_US
        return LOOK_WARM_US if quiet_us < WARM_FOR_US else LOOK_IDLE_US

    def due(self) -> bool:
        """Whether it is time to look."""
        if not self._hub.watched:
            return False
        now_us = self._monotonic_us()
        return now_us >= self._looked_us + self._pace_us(now_us)

    def look(self, connection: apsw.Connection) -> None:
        """Announce what other connections changed since the last look."""
        self._looked_us = now_us = self._monotonic_us()
        try:
            ((version,),) = connection.execute(_DATA_VERSION)
        except apsw.Error:
            # It fails in the open at the next commit; waiters are told to look for themselves.
            version = -1
        known = self._version if connection is self._connection else None
        self._connection, self._version = connection, version
        if version != known:
            self._changed_us = now_us
            self._hub.announce(Topic.ANY)
