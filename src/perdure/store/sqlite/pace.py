"""How quick commits are of late: whether an event loop may well do one itself."""

from collections.abc import Callable

QUICK_US = 3_000.0
SMOOTHING = 0.1
SLOW_FOR_US = 1_000_000
"""While commits take longer than `QUICK_US`, smoothed, one in so long is tried only."""


class Pace:
    """The pace of one sort of commits. Those that wait for the disk and those that do not are two sorts."""

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._monotonic_us = monotonic_us
        self._smoothed_us = 0.0
        self._again_us = 0

    @property
    def quick(self) -> bool:
        """Whether they take so little time, or it is time to try again."""
        return self._smoothed_us < QUICK_US or self._monotonic_us() >= self._again_us

    def note(self, taken_us: float) -> None:
        """Note what a commit took. One that took long says little; several in a row do, and then one that did not says
        that it is over.
        """
        taken_us = min(taken_us, 3 * QUICK_US)
        if self._smoothed_us < QUICK_US:
            taken_us = self._smoothed_us + (taken_us - self._smoothed_us) * SMOOTHING
        self._smoothed_us = taken_us
        if taken_us >= QUICK_US:
            self._again_us = self._monotonic_us() + SLOW_FOR_US
