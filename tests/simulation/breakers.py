"""A kind with a breaker, and a second account of when its tasks may start."""

from collections import deque
from collections.abc import Callable
from typing import Any

from perdure.domain.breaker import Breaker, BreakerEvent, BreakerTurn
from perdure.domain.states import TaskState
from simulation.coverage import Coverage
from simulation.gated import SECOND_US
from simulation.known import Commit, Step

FRAIL = "frail"
BREAKER = Breaker(failures=2, window=20.0, open_for=5.0, probes=1)
KINDS: dict[str, dict[str, Any]] = {FRAIL: {"breaker": BREAKER, "lease": 6.0}}
TURNING = frozenset({"trip_breaker", "reset_breaker"})


class BreakerAccount:
    """Until when the breaker of each organization's kind is open, as the answers that turned it say."""

    def __init__(self, wrong: Callable[[str], None], coverage: Coverage) -> None:
        self._wrong = wrong
        self._coverage = coverage
        self._until_us: dict[str, int] = {}
        self._probes: dict[str, deque[int]] = {}
        self._failed: dict[str, int] = {}
        """Since the last turn: attempts that failed, whenever they began."""
        self._claimed: list[str] = []

    def before(self, commit: Commit) -> None:
        """A commit is going to be looked at."""
        self._claimed.clear()

    def moved(self, commit: Commit, step: Step) -> None:
        """A task has moved."""
        row = step.known.row
        if row.kind != FRAIL:
            return
        if step.new is TaskState.LEASED:
            self._claimed.append(row.organization)
        elif commit.verb == "settle":
            self._failed[row.organization] = self._failed.get(row.organization, 0) + 1

    def after(self, commit: Commit) -> None:
        """Note what it turned, and judge its claims, which come last in a commit."""
        turns: list[BreakerTurn | None] = []
        if commit.verb == "settle" and not commit.refused:
            turns = [each.turned for each in commit.answer]
        elif commit.verb in TURNING and not commit.refused:
            turns = [commit.answer]
        for turn in turns:
            if turn is not None:
                self._turn(turn, commit.now_us)
        for organization in self._claimed:
            self._judge_start(organization, commit.now_us)

    def _judge_start(self, organization: str, now_us: int) -> None:
        until_us = self._until_us.get(organization)
        if until_us is None:
            return
        if now_us < until_us:
            self._wrong(f"a task of {FRAIL} was claimed at {now_us}, its breaker is open until {until_us}")
        probes = self._probes[organization]
        while probes and probes[0] <= now_us - round(BREAKER.open_for * SECOND_US):
            probes.popleft()
        probes.append(now_us)
        self._coverage.feats["a breaker let a probe through"] += 1
        if len(probes) > BREAKER.probes:
            self._wrong(f"{len(probes)} probes of {FRAIL} were let through within {BREAKER.open_for} s")

    def _turn(self, turn: BreakerTurn, now_us: int) -> None:
        self._coverage.feats[f"a breaker: {turn.event}"] += 1
        organization = turn.organization
        if turn.event is BreakerEvent.TOO_MANY_FAILED and self._failed.get(organization, 0) < (BREAKER.failures or 0):
            self._wrong(f"{turn}, but only {self._failed.get(organization, 0)} attempts have ended since it closed")
        if turn.until_us is None:
            self._until_us.pop(organization, None)
            self._failed[organization] = 0
        else:
            if turn.until_us <= now_us:
                self._wrong(f"{turn} at {now_us} is over before it begins")
            self._until_us[organization] = turn.until_us
        self._probes[organization] = deque()
