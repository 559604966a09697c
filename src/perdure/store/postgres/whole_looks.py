"""When a part of an index is looked over from its beginning, whatever lies dead there."""

from collections.abc import Callable

from perdure.store.postgres.marks import LATE_EVERY_US, LATE_SHARE

SETTLED_US = 250_000
"""After so long what was under way has committed, as a rule: what commits later is found by a whole look only."""


class WholeLooks:
    """Looks from the beginning take at most one part in `LATE_SHARE` of the time, and are `every_us` apart."""

    def __init__(self, monotonic_us: Callable[[], int], every_us: int = LATE_EVERY_US) -> None:
        self.monotonic_us = monotonic_us
        self._every_us = every_us
        self.again_us = 0
        """When it is time for one."""
        self.begun_us = -1
        """When the last one was begun."""

    @property
    def is_time(self) -> bool:
        """Whether to look from the beginning now."""
        return self.monotonic_us() >= self.again_us

    def looked(self, begun_us: int, ended_us: int) -> None:
        """One was begun and has ended."""
        self.begun_us = begun_us
        self.again_us = ended_us + max(self._every_us, LATE_SHARE * (ended_us - begun_us))
