"""Ageing: lanes whose first task has waited long count as more urgent than their priority says."""

from collections.abc import Iterable, Mapping, Sequence

from perdure.domain.fair_share import aged
from perdure.domain.limits import PRIORITY_MAX, SECOND_US
from perdure.store.relational.lanes import Lane
from perdure.store.relational.transaction import Transaction, batch

LOOK_EVERY_US = SECOND_US
"""So old may be what is known of how long first tasks have waited."""


class Ageing:
    """What is known of how long the first tasks of lanes have waited. Used by one thread at a time."""

    def __init__(self) -> None:
        self._since: dict[int, int] = {}
        self._looked_us = 0
        self._asked_us = 0
        self.raises = False
        """Whether a lane counts as more urgent than it is."""

    def matters(self, ageing_us: int, now_us: int) -> bool:
        """Whether a lane counts as more urgent than it is, or it is time to look whether one does."""
        if not ageing_us or self.raises:
            return self.raises and bool(ageing_us)
        is_time = not 0 <= now_us - self._asked_us < LOOK_EVERY_US
        if is_time:
            self._asked_us = now_us
        return is_time

    def priorities(
        self,
        tx: Transaction,
        ageing_us: int,
        heads: Iterable[Sequence[int]],
        lanes: Mapping[int, Lane],
    ) -> dict[int, int]:
        """The priorities by which these lanes count now; `heads` are where their first tasks are, as `lane_waiting`
        takes it.
        """
        plain = {number: lane.priority for number, lane in lanes.items()}
        if not ageing_us or len(set(plain.values())) <= 1:
            return plain
        if not 0 <= tx.now_us - self._looked_us < LOOK_EVERY_US:
            self._looked_us = tx.now_us
            self._since = {}
            for lane, since_us in tx.document("lane_waiting", batch=batch(list(heads))):
                self._since[lane] = min(since_us, self._since.get(lane, since_us))
        raised = {
            number: aged(priority, tx.now_us - self._since.get(number, tx.now_us), ageing_us, PRIORITY_MAX)
            for number, priority in plain.items()
        }
        self.raises = raised != plain
        return raised
