"""Lost attempts are ended as soon as they may be, and not while time is in doubt."""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from perdure.ambient import Chance
from perdure.domain.attempt import Hold
from perdure.domain.settlement import AttemptFacts, Charge
from perdure.domain.states import TaskState
from perdure.domain.transitions import Event
from perdure.engine.lose import Lose
from perdure.engine.retry_policies import RetryPolicies
from perdure.errors import StoreUnreachable
from perdure.store.ledger import Doubtful, Guard, SettleAnswer, Settled, Settling
from virtual_time import VirtualClock

SECOND = 1_000_000
LEASE_US = 60 * SECOND
HOLD = Hold("default", "task", "attempt", "")


class Scripted:
    """A ledger with a clock of its own, in which a test says what is doubtful."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.ahead_us = 1_800_000_000 * SECOND
        self.guards: list[Guard] = []
        self.suspended: list[int] = []
        self.settled: list[Settling] = []
        self.away = False
        self.asked_for_time = 0
        self.holds = True
        self.refuses = 0
        """So many suspensions are not stored."""

    def store_us(self) -> int:
        return self._clock.monotonic_us() + self.ahead_us

    def _answer(self) -> None:
        if self.away:
            raise StoreUnreachable("away")

    async def now_us(self) -> int:
        self._answer()
        self.asked_for_time += 1
        return self.store_us()

    async def holding(self) -> bool:
        self._answer()
        return self.holds

    async def find_doubtful(self, limit: int) -> list[Doubtful]:
        self._answer()
        return [Doubtful(HOLD, guard, facts(self.store_us()), None) for guard in self.guards]

    async def settle(self, settlings: Sequence[Settling]) -> list[Settled]:
        self._answer()
        self.settled += settlings
        self.guards = []
        return [Settled(SettleAnswer.APPLIED, each.settlement.state) for each in settlings]

    async def suspend_losses(self, until_us: int) -> None:
        self._answer()
        if self.refuses:
            self.refuses -= 1
            raise StoreUnreachable("not now")
        self.suspended.append(until_us)

    async def losses_suspended_until(self) -> int:
        return max(self.suspended, default=0)


def facts(now_us: int) -> AttemptFacts:
    return AttemptFacts(
        now_us=now_us,
        state=TaskState.RUNNING,
        failures=0,
        losses=0,
        snoozes=0,
        hand_backs=0,
        max_attempts=3,
        max_losses=3,
        on_loss="retry",
        deadline_us=now_us + 3600 * SECOND,
        expires_us=None,
        dead_letters=True,
        receipt=None,
    )


class Runner:
    """A lose duty on a scripted ledger, run every few seconds of virtual time."""

    def __init__(self, leases_us: set[int] | None = None) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.ledger = Scripted(self.clock)
        self.duty = self.fresh(leases_us)

    def fresh(self, leases_us: set[int] | None = None) -> Lose:
        leases = leases_us or {LEASE_US}
        return Lose(self.ledger, self.clock, Chance(1), RetryPolicies(), lambda: leases)  # type: ignore[arg-type]

    async def run(self) -> int:
        return (await self.duty.run_once(self.clock.monotonic_us())).moved

    async def run_for(self, seconds: float, every: float = 4.0) -> None:
        for _ in range(round(seconds / every)):
            await asyncio.sleep(every)
            await self.run()

    async def run_away(self, seconds: float, every: float = 4.0) -> None:
        """The store is away for that long, and the duty notices at every try."""
        self.ledger.away = True
        for _ in range(round(seconds / every)):
            await asyncio.sleep(every)
            with pytest.raises(StoreUnreachable):
                await self.run()
        self.ledger.away = False


async def test_a_lost_lease_is_ended_and_charged() -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 1
    (settled,) = it.ledger.settled
    assert (settled.guard, settled.hold) == (Guard.LEASE_OVER, HOLD)
    assert (settled.settlement.event, settled.settlement.charge) == (Event.LOSE, Charge.LOSS)
    assert it.ledger.suspended == []


async def test_what_is_lost_is_told_in_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    it = Runner()
    it.ledger.guards = [Guard.TIMEOUT_OVER]
    with caplog.at_level(logging.WARNING, "perdure.engine"):
        await it.run()
        assert caplog.records == []
        it.ledger.guards = [Guard.LEASE_OVER] * 5
        await it.run()
        it.ledger.guards = [Guard.LEASE_OVER]
        await it.run()
    line, single = [each.getMessage() for each in caplog.records]
    assert line.startswith("5 attempts are lost, for nothing was heard of their workers until their leases were over")
    assert line.endswith("tasks: task, task, task and 2 more")
    assert single.startswith("1 attempt is lost, for nothing was heard of its worker until its lease was over; task")


async def test_a_process_that_has_just_started_doubts_nothing() -> None:
    it = Runner()
    await asyncio.sleep(10_000)
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 1
    assert it.ledger.settled[0].settlement.charge == Charge.LOSS


@pytest.mark.parametrize("jump", [100, -100])
async def test_a_suspension_that_could_not_be_stored_is_stored_as_soon_as_it_can_be(jump: float) -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.ahead_us += round(jump * SECOND)
    until_us = it.ledger.store_us() + LEASE_US
    it.ledger.guards = [Guard.LEASE_OVER]
    it.ledger.refuses = 2
    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            await it.run()
    assert it.ledger.suspended == []
    await it.run()
    await it.run()
    assert it.ledger.suspended == [until_us]
    assert not it.ledger.settled


@pytest.mark.parametrize("jump", [3600.0, 25.0, -3600.0, -25.0])
async def test_a_jump_of_the_stores_time_suspends_losses_for_one_lease(jump: float) -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.ahead_us += round(jump * SECOND)
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 0
    assert it.ledger.settled == []
    assert it.ledger.suspended == [it.ledger.store_us() + LEASE_US]


async def test_what_is_lost_by_the_jump_costs_no_budget_and_later_losses_do() -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.ahead_us += 3600 * SECOND
    it.ledger.guards = [Guard.LEASE_OVER]
    await it.run()
    await it.run_for(56)
    assert it.ledger.settled == []
    await it.run_for(8)
    assert [each.settlement.charge for each in it.ledger.settled] == [Charge.NOTHING]
    await it.run_for(12)
    it.ledger.guards = [Guard.LEASE_OVER]
    await it.run()
    assert it.ledger.settled[-1].settlement.charge == Charge.LOSS
    assert len(it.ledger.suspended) == 1


async def test_a_jump_there_and_back_does_not_hold_losses_back_for_its_length() -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.ahead_us += 24 * 3600 * SECOND
    it.ledger.guards = [Guard.LEASE_OVER]
    await it.run()
    it.ledger.ahead_us -= 24 * 3600 * SECOND
    it.ledger.suspended.clear()  # What the store makes of it is its own business.
    await it.run_for(60)
    assert it.ledger.settled == []
    await it.run_for(80)
    assert len(it.ledger.settled) == 1


async def test_a_jump_too_small_to_end_a_lease_changes_nothing() -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.ahead_us += 5 * SECOND
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 1
    assert it.ledger.suspended == []


async def test_only_the_leases_that_a_jump_can_end_decide_for_how_long() -> None:
    it = Runner({5 * SECOND, 60 * SECOND, 3600 * SECOND})
    await it.run_for(20)
    it.ledger.ahead_us += 5 * SECOND
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 0
    assert it.ledger.suspended == [it.ledger.store_us() + 5 * SECOND]


async def test_a_jump_is_noticed_where_nothing_is_doubtful() -> None:
    it = Runner()
    await it.run_for(20)
    it.ledger.ahead_us += 3600 * SECOND
    await it.run_for(64)
    assert len(it.ledger.suspended) == 1


async def test_a_slow_answer_of_the_store_is_no_jump() -> None:
    it = Runner()
    await it.run_for(20)
    prompt = it.ledger.find_doubtful

    async def slow(limit: int) -> list[Doubtful]:
        found = await prompt(limit)
        await asyncio.sleep(30)
        return found

    it.ledger.find_doubtful = slow  # type: ignore[method-assign]
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 1
    it.ledger.find_doubtful = prompt  # type: ignore[method-assign]
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 1
    assert it.ledger.suspended == []


async def test_a_store_that_was_away_longer_than_a_lease_suspends_losses() -> None:
    it = Runner()
    await it.run_for(20)
    await it.run_away(64)
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 0
    assert it.ledger.suspended == [it.ledger.store_us() + LEASE_US]
    await it.run_for(64)
    assert [each.settlement.charge for each in it.ledger.settled] == [Charge.NOTHING]


async def test_a_store_that_was_away_for_a_moment_changes_nothing() -> None:
    it = Runner()
    await it.run_for(20)
    await it.run_away(12)
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 1
    assert it.ledger.suspended == []


async def test_a_process_that_stood_still_holds_back_alone() -> None:
    it = Runner()
    await it.run_for(20)
    await asyncio.sleep(90)
    it.ledger.guards = [Guard.LEASE_OVER]
    assert await it.run() == 0
    assert it.ledger.suspended == []
    other = it.fresh()
    assert (await other.run_once(it.clock.monotonic_us())).moved == 1
    it.ledger.guards = [Guard.LEASE_OVER]
    await it.run_for(56)
    assert len(it.ledger.settled) == 1
    await it.run_for(8)
    assert it.ledger.settled[-1].settlement.charge == Charge.NOTHING


async def test_a_suspension_by_another_process_is_kept_to() -> None:
    it = Runner()
    it.ledger.suspended = [it.ledger.store_us() + LEASE_US]
    it.ledger.guards = [Guard.LEASE_OVER]
    await it.run_for(56)
    assert it.ledger.settled == []
    await it.run_for(8)
    assert it.ledger.settled[0].settlement.charge == Charge.NOTHING


@pytest.mark.parametrize(
    ("guard", "event", "state"),
    [
        (Guard.DEADLINE_OVER, Event.FAIL, TaskState.DEAD_LETTERED),
        (Guard.TIMEOUT_OVER, Event.RETRY, TaskState.RETRYING),
        (Guard.CANCEL_OVER, Event.CANCEL_DEADLINE, TaskState.CANCELLED),
        (Guard.WORKER_REVOKED, Event.REVOKE, TaskState.QUEUED),
    ],
)
async def test_other_ends_are_not_held_back(guard: Guard, event: Event, state: TaskState) -> None:
    it = Runner()
    it.ledger.suspended = [it.ledger.store_us() + LEASE_US]
    it.ledger.guards = [guard, Guard.LEASE_OVER]
    assert await it.run() == 1
    (settled,) = it.ledger.settled
    assert (settled.guard, settled.settlement.event, settled.settlement.state) == (guard, event, state)
    assert settled.hold.token == ""


async def test_an_idle_run_asks_for_the_time_once_a_minute() -> None:
    it = Runner()
    await it.run_for(600)
    assert it.ledger.asked_for_time <= 11
