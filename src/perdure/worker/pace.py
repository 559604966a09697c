"""When a worker that finds nothing looks for itself: ever less often, for hints tell of what comes."""

from perdure.ambient import Chance
from perdure.domain.limits import SECOND_US

POLL_MAX_SECONDS = 30.0
"""However little is found, the pause is no longer than this, or than what is set."""
FIRST_MAX_TASKS = 8
"""A worker that had found no more work asks for so many at first: that is quicker, and then it asks for the rest."""
GROWTH = 4
"""Each look that finds nothing makes the pause so many times as long."""


class Pace:
    """The pauses between looks that nothing asked for."""

    def __init__(self, poll: float, chance: Chance) -> None:
        self._poll = poll
        self._chance = chance
        self._fruitless = 0
        self.look_at_us = 0
        """When to look, if no hint comes before."""

    def looked(self, now_us: int, found: bool) -> None:
        """Note that there is no more now, and whether there was anything."""
        self._fruitless = 0 if found else self._fruitless + 1
        longest = max(self._poll, POLL_MAX_SECONDS)
        seconds = min(self._poll * GROWTH ** min(self._fruitless, 10), longest) * self._chance.uniform(0.7, 1.0)
        self.look_at_us = now_us + round(seconds * SECOND_US)
