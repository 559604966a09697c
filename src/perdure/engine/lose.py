"""The duty that ends attempts whose worker did not: lease, deadline, timeout or cancel deadline over, worker revoked.

It builds settlements and sends them through the same `ledger.settle` as everybody; the guard repeats the condition.

When time is in doubt, nothing is declared lost, and what is found lost afterwards costs no budget:

- The store's time ran ahead of, or behind, this process's own clock: leases look over that are not. Every runner is
  told through the store to declare nothing lost for one lease.
- The store was away while leases could not be renewed: the same.
- This process stood still (stopped, or its event loop was blocked) while the store went on: its view is old, others'
  are not. It alone holds back, so that a frozen process that wakes does not delay the recovery of others' tasks.

A process that has just started has no history and doubts nothing: what a killed worker left behind is lost as soon as
its lease is over.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from perdure.ambient import Chance, Clock
from perdure.domain import limits
from perdure.domain.settlement import (
    Settlement,
    settle_cancel_overdue,
    settle_loss,
    settle_overdue,
    settle_revoked,
)
from perdure.engine.duties import QUIET_US
from perdure.engine.flow import tell
from perdure.engine.retry_policies import RetryPolicies
from perdure.errors import Unavailable
from perdure.store.ledger import Doubtful, Guard, Ledger, SettleAnswer, Settling, Swept
from perdure.store.wakeups import Topic

COMPARE_US = 60 * limits.SECOND_US
"""How often the store's time is asked for, only to compare it; what is found lost brings it along for nothing."""
RENEWED_WITHIN = 3
"""A lease is renewed when a third of it is gone, and a third is left when that fails once: a jump of a third can end
it.
"""
AFTERMATH_US = 10 * limits.SECOND_US
"""For how long after a pause of losses what is found lost is counted as lost by the pause."""

LOST_SHOWN = 3
"""So many of the tasks whose attempts were lost are named in the log."""

_log = logging.getLogger("perdure.engine")


class _Reading(NamedTuple):
    """The store's time, and this process's before it was asked and after it had answered."""

    before_us: int
    store_us: int
    after_us: int


class Lose:
    """Ends attempts that nobody else ends."""

    name = "lose"
    interval_us = 4 * limits.SECOND_US
    wakes_on = Topic.CONTROL
    rest_us = limits.SECOND_US // 4

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        chance: Chance,
        policies: RetryPolicies,
        leases_us: Callable[[], Iterable[int]],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._chance = chance
        self._policies = policies
        self._leases_us = leases_us
        self._last_run_us: int | None = None
        self._paused_us = self.interval_us
        """The longest that the next run may be away by plan."""
        self._store_was_away = False
        self._reading: _Reading | None = None
        self._held_back_until_us = 0
        self._unsaid_until_us = 0
        """Until when losses are to be suspended, while the store has not been told."""

    async def run_once(self, now_us: int) -> Swept:
        """End at most one sweep of attempts. `moved` counts those that this run ended."""
        started_us = self._clock.monotonic_us()
        try:
            found = await self._ledger.find_doubtful(limits.SWEEP_MAX_TASKS)
            await self._look_for_doubts(started_us, found)
            if self._unsaid_until_us:
                await self._ledger.suspend_losses(self._unsaid_until_us)
                self._unsaid_until_us = 0
            settlings = await self._settlings(found)
            answers = await self._ledger.settle(settlings) if settlings else []
        except Unavailable:
            self._store_was_away = True
            raise
        self._store_was_away = False
        self._last_run_us = self._clock.monotonic_us()
        ended = [of for of, answer in zip(settlings, answers, strict=True) if answer.answer is SettleAnswer.APPLIED]
        _tell_of(ended)
        moved = len(ended)
        turned = tell(answer.turned for answer in answers)
        # Hints tell of what is queued from now on, and what is claimed unheard of cannot be lost before the next run.
        quiet = not found and self._leases_outlast_quiet() and not await self._ledger.holding()
        self._paused_us = QUIET_US if quiet else self.interval_us
        return Swept(moved, None, len(found) >= limits.SWEEP_MAX_TASKS and moved > 0, quiet, tuple(turned))

    def _leases_outlast_quiet(self) -> bool:
        return min(self._leases_us(), default=QUIET_US) >= QUIET_US

    async def _look_for_doubts(self, started_us: int, found: list[Doubtful]) -> None:
        ended_us = self._clock.monotonic_us()
        reading = await self._read(started_us, found, ended_us)
        jump_us = 0
        if reading is not None:
            jump_us = _jump(self._reading, reading) if self._reading is not None else 0
            self._reading = reading
        jumped_us = self._longest(RENEWED_WITHIN * jump_us)
        away_us = self._longest(self._absence_us(ended_us))
        if not away_us and not jumped_us:
            return
        store_us = reading.store_us if reading is not None else await self._ledger.now_us()
        until_us = store_us + max(away_us, jumped_us)
        # After a jump the earlier instant is on another scale.
        self._held_back_until_us = until_us if jumped_us else max(self._held_back_until_us, until_us)
        _log.warning(
            "time is in doubt (jump %.1f s, away %.1f s): nothing is declared lost for %.1f s",
            jump_us / limits.SECOND_US,
            self._absence_us(ended_us) / limits.SECOND_US,
            (until_us - store_us) / limits.SECOND_US,
        )
        if jumped_us or self._store_was_away:
            self._unsaid_until_us = until_us if jumped_us else max(self._unsaid_until_us, until_us)

    def _absence_us(self, now_us: int) -> int:
        """For how long nobody here could have seen the store, beyond the usual pause between two runs."""
        if self._last_run_us is None:
            return 0
        absence_us = max(0, now_us - self._last_run_us - self._paused_us)
        # A lease that was renewed as late as is usual runs out after two thirds of its length without the store.
        return absence_us * 3 // 2 if self._store_was_away else absence_us

    async def _read(self, started_us: int, found: list[Doubtful], ended_us: int) -> _Reading | None:
        """The store's time, if it came along or has not been compared for long."""
        if found:
            return _Reading(started_us, found[0].facts.now_us, ended_us)
        last = self._reading
        if last is not None and not self._store_was_away and started_us - last.after_us < COMPARE_US:
            return None
        before_us = self._clock.monotonic_us()
        store_us = await self._ledger.now_us()
        return _Reading(before_us, store_us, self._clock.monotonic_us())

    def _longest(self, most_us: int) -> int:
        """The longest of the leases in use that are not longer than `most_us`; 0 when none is."""
        return max((lease_us for lease_us in self._leases_us() if lease_us <= most_us), default=0)

    async def _settlings(self, found: list[Doubtful]) -> list[Settling]:
        if not found:
            return []
        held_back_until_us = self._held_back_until_us
        if any(each.guard is Guard.LEASE_OVER for each in found):
            held_back_until_us = max(held_back_until_us, await self._ledger.losses_suspended_until())
        settlings: list[Settling] = []
        for each in found:
            charged = True
            if each.guard is Guard.LEASE_OVER:
                if each.facts.now_us < held_back_until_us:
                    continue
                charged = each.facts.now_us >= held_back_until_us + AFTERMATH_US
            settlings.append(Settling(each.hold, each.guard, self._decide(each, charged), f"duty:{each.guard}"))
        return settlings

    def _decide(self, each: Doubtful, charged: bool) -> Settlement:
        retry = self._policies.of(each.retry)
        spread = self._chance.uniform(-1.0, 1.0)
        match each.guard:
            case Guard.LEASE_OVER | Guard.HOLDER:
                return settle_loss(each.facts, retry, spread, charged)
            case Guard.DEADLINE_OVER:
                return settle_overdue(each.facts, False, retry, spread)
            case Guard.TIMEOUT_OVER:
                return settle_overdue(each.facts, True, retry, spread)
            case Guard.CANCEL_OVER:
                return settle_cancel_overdue(each.facts)
            case Guard.WORKER_REVOKED:
                return settle_revoked(each.facts)


def _tell_of(ended: Sequence[Settling]) -> None:
    """One line for all attempts of a run whose workers said nothing any more."""
    lost = [each.hold.task_id for each in ended if each.guard is Guard.LEASE_OVER]
    if len(lost) == 1:
        _log.warning("1 attempt is lost, for nothing was heard of its worker until its lease was over; task: %s", *lost)
    elif lost:
        more = f" and {len(lost) - LOST_SHOWN} more" if len(lost) > LOST_SHOWN else ""
        _log.warning(
            "%d attempts are lost, for nothing was heard of their workers until their leases were over; tasks: %s%s",
            len(lost),
            ", ".join(lost[:LOST_SHOWN]),
            more,
        )


def _jump(earlier: _Reading, later: _Reading) -> int:
    """By how much the store's time moved more, or less, than this process's; the time of asking is no jump."""
    store_us = later.store_us - earlier.store_us
    least_us = later.before_us - earlier.after_us
    most_us = later.after_us - earlier.before_us
    return max(store_us - most_us, least_us - store_us, 0)
