"""How many leases may wait here for a slot: only as long as handlers are so short that nobody else would be sooner.

A claim costs the store about as much as some ten tasks, however many it brings. So where nothing else is set, a worker
that gets through many tasks in a moment has more at hand. What counts is how many it gets through as things are: beside
other workers on a busy machine, or at a busy store, it is slower, and leaves more to them.
"""

from collections.abc import Sequence

from perdure.domain.limits import SECOND_US
from perdure.worker.held import HeldAttempt
from perdure.worker.worker_settings import PREFETCH_MIN, WorkerSettings

SHORT_US = SECOND_US
"""Handlers that take less than this on the average are worth having the next ones at hand."""
WAIT_MAX_US = 5 * SECOND_US
"""What has waited here that long is handed back: another worker may have a free slot."""
AHEAD_US = 20_000
"""How much work may be here, in time, where it is not set how many tasks that are. A claim asks for what will be gone
before it is answered, too, but for no more of that than this once more.
"""
AHEAD_WAIT_MAX_US = SECOND_US // 4
"""What waits here beyond the least is handed back after that long: it was to wait for a moment."""
AHEAD_BYTES = 4 * 1024 * 1024
"""How large the payloads may be together that wait here beyond the least."""
WEIGHT = 0.1
"""Of the latest handler in the running averages."""
WEIGHT_OF_CLAIM = 0.3
"""Of the latest claim in the running averages: the time since the one before, and until its answer."""
FADING = 0.99
"""What each handler leaves of the longest one before: among many short ones a long one counts for some hundreds."""


class Prefetch:
    """Learns how long handlers take, and how soon tasks are gone. Until it knows, nothing is fetched ahead.

    `at_rates`: some start at a rate, which counts from their claim. So nothing is fetched ahead unless it is set.
    """

    def __init__(self, settings: WorkerSettings, at_rates: bool = False) -> None:
        self._settings = settings
        self._none = at_rates and settings.prefetch is None
        self._typical_us: float | None = None
        self._longest_us = 0.0
        """Of late: each handler that is shorter lets it fade a little."""
        self._typical_bytes = 0.0
        self._each_us: float | None = None
        """So long it takes for each task, all slots together, from one claim to the next."""
        self._answer_us = 0.0
        """So long a claim takes to be answered."""
        self._claimed_us: int | None = None

    def note(self, duration_us: int, size: int) -> None:
        """A handler ended whose task had a payload of so many bytes."""
        known = self._typical_us
        self._typical_us = duration_us if known is None else known + WEIGHT * (duration_us - known)
        self._longest_us = max(self._longest_us * FADING, duration_us)
        self._typical_bytes += WEIGHT * (size - self._typical_bytes)

    def claimed(self, leases: int, wanted: int, sent_us: int, now_us: int) -> None:
        """A claim was answered. As many leases as were wanted replace what went since the last such claim."""
        before_us, self._claimed_us = self._claimed_us, now_us if leases >= wanted else None
        if leases >= wanted:
            self._answer_us += WEIGHT_OF_CLAIM * (min(now_us - sent_us, AHEAD_US) - self._answer_us)
        if before_us is not None and self._claimed_us is not None:
            known, each_us = self._each_us, (now_us - before_us) / leases
            self._each_us = each_us if known is None else known + WEIGHT_OF_CLAIM * (each_us - known)

    def room(self, concurrency: int, busy: int, waiting: int) -> int:
        """How many more leases to ask for; 0 while it is not worth a claim, because enough wait."""
        room = concurrency + self._allowed(concurrency) - busy - waiting
        return 0 if waiting and waiting >= room else room

    def stale(self, waiting: Sequence[HeldAttempt], places: int, now_us: int) -> list[HeldAttempt]:
        """Which of those that wait, the first one first, have waited too long. Learns anew if there are some."""
        stale = [
            held
            for place, held in enumerate(waiting)
            if now_us - held.answered_us >= (WAIT_MAX_US if place < places else AHEAD_WAIT_MAX_US)
        ]
        if stale:
            self._typical_us = self._each_us = None
        return stale

    def stale_at_us(self, waiting: Sequence[HeldAttempt], places: int) -> int | None:
        """When there will be some, if none of these begins; `None` when none wait."""
        if not waiting:
            return None
        at_us = waiting[0].answered_us + WAIT_MAX_US
        return at_us if len(waiting) <= places else min(at_us, waiting[places].answered_us + AHEAD_WAIT_MAX_US)

    def places(self, concurrency: int, busy: int) -> int:
        """How many may wait longer than a moment: those that have a slot, and the least beside them."""
        return max(0, concurrency - busy) + self._least(concurrency)

    def _least(self, concurrency: int) -> int:
        """How many may wait at any pace."""
        return min(concurrency, PREFETCH_MIN) if self._settings.prefetch is None else self._settings.prefetch

    def _allowed(self, concurrency: int) -> int:
        """How many leases may wait beside `concurrency` running ones."""
        if self._none or self._typical_us is None or self._typical_us >= SHORT_US:
            return 0
        least, most = self._least(concurrency), self._settings.prefetch_for(concurrency)
        if least >= most or self._each_us is None:
            return least
        by_pace = (AHEAD_US + self._answer_us) / max(1.0, self._each_us) - concurrency
        by_longest = concurrency * AHEAD_US / max(1.0, self._longest_us)
        by_size = AHEAD_BYTES / max(1.0, self._typical_bytes)
        return max(least, round(min(by_pace, by_longest, by_size, most)))
