"""When a part of an index is looked over from its beginning, whatever lies dead there."""

from collections.abc import Callable

from perdure.store.postgres.marks import LATE_EVERY_US, LATE_SHARE


class WholeLooks:
    """Looks from the beginning take at most one part in `LATE_SHARE` of the time."""

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self.monotonic_us = monotonic_us
        self._again_us = 0

    @property
    def is_time(self) -> bool:
        """Whether to look from the beginning now."""
        return self.monotonic_us() >= self._again_us

    def looked(self, begun_us: int) -> None:
        """One was begun at `begun_us` and is over."""
        ended_us = self.monotonic_us()
        self._again_us = ended_us + max(LATE_EVERY_US, LATE_SHARE * (ended_us - begun_us))
