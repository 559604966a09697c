"""Unique tasks: what is asked for, and a second account of who holds which key and whether each answer is true."""

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from perdure.domain.states import ENDED, WAITING, TaskState
from perdure.domain.unique import Unique
from perdure.errors import Invalid, UniqueConflict
from perdure.store.ledger import Submitted
from simulation.coverage import Coverage
from simulation.known import Commit, Known, Step
from simulation.observer import Observer

POLICIES: dict[str, Unique] = {
    "rejecting": Unique(by="key"),
    "returning": Unique(by="key", on_conflict="return_existing"),
    "replacing": Unique(by="key", on_conflict="replace"),
    "debouncing": Unique(by="key", on_conflict="debounce", wait=3.0, max_wait=8.0),
    "throttling": Unique(by="key", on_conflict="throttle", within=12.0),
    "keeping": Unique(
        by="key",
        on_conflict="return_existing",
        states=(TaskState.LEASED, TaskState.RUNNING, TaskState.SUCCEEDED),
        within=20.0,
    ),
    "waiting": Unique(by="key", states=(TaskState.PENDING,)),
}
MIXED = "mixed"
"""A key for which everybody asks otherwise."""
MIXING = [name for name, said in POLICIES.items() if said.within is None]
"""Where some lose a key by time and others by state, one may wait though another one has its key."""


def drawn(chance: random.Random) -> tuple[str, Unique]:
    """A key and how it is asked for."""
    key = chance.choice((*POLICIES, MIXED))
    return key, POLICIES[chance.choice(MIXING) if key == MIXED else key]


class Rule(NamedTuple):
    """When a task may not have its key beside another one."""

    slot: tuple[str, str]
    """Organization and key."""
    on_conflict: str
    states: frozenset[str]
    within_us: int | None
    wait_us: int | None
    max_wait_us: int | None


class Held(NamedTuple):
    """Who holds a key, since when, by which rule of its own."""

    id: str
    taken_us: int
    rule: Rule
    state: TaskState | None
    alone: bool


def rule_of(organization: str, options: str | None) -> Rule | None:
    """The rule of a task with these options."""
    said: Mapping[str, Any] | None = msgspec.json.decode(options).get("unique") if options else None
    if said is None:
        return None
    states = {"throttle": frozenset(TaskState), "debounce": WAITING}.get(said["on_conflict"], frozenset(said["states"]))
    times = (said.get("within_us"), said.get("wait_us"), said.get("max_wait_us"))
    return Rule((organization, said["key"]), said["on_conflict"], frozenset(map(str, states)), *times)


class KeyAccount:
    """Who holds which key. A commit is judged once all that it moved is seen."""

    def __init__(
        self,
        wrong: Callable[[str], None],
        coverage: Coverage,
        observer: Observer,
        tasks: Mapping[str, Known],
    ) -> None:
        self._wrong = wrong
        self._coverage = coverage
        self._observer = observer
        self._tasks = tasks
        self._holders: dict[tuple[str, str], Held] = {}
        self._before: dict[tuple[str, str], Held] = {}
        """How the keys that a submit asks for stood before it."""
        self._taken: list[tuple[Held, Known, Rule]] = []
        self._begun: set[str] = set()

    def before(self, commit: Commit) -> None:
        """A commit is going to be looked at."""
        self._taken.clear()
        self._begun.clear()
        self._before.clear()
        if commit.verb == "submit":
            for task in commit.arguments[0]:
                rule = rule_of(task.terms.organization, task.rare.options)
                if rule is not None and (held := self._standing(rule.slot, commit.now_us)) is not None:
                    self._before[rule.slot] = held

    def moved(self, commit: Commit, step: Step) -> None:
        """A task has moved."""
        if not step.begins:
            return
        known = step.known
        self._begun.add(known.row.id)
        rule = rule_of(known.row.organization, known.row.options)
        if rule is None:
            return
        prior = self._holders.get(rule.slot)
        if prior is not None and prior.id != known.row.id:
            self._taken.append((prior, known, rule))
        self._holders[rule.slot] = Held(known.row.id, commit.now_us, rule, step.new, known.row.job is None)

    def after(self, commit: Commit) -> None:
        """Judge what it did."""
        for prior, known, rule in self._taken:
            held = self._as_it_stands(prior, commit.now_us)
            if held is not None and _holds(rule, held, commit.now_us):
                self._wrong(f"{commit.verb} gave {rule.slot} to {known.row.id}, but {held} holds it")
        if commit.verb == "submit" and not commit.refused:
            self._judge_answers(commit)
        if commit.verb == "redrive" and not commit.refused:
            refused = sum(isinstance(each, UniqueConflict) for each in commit.answer)
            self._coverage.feats["a redrive met the holder of its key"] += refused

    def _standing(self, slot: tuple[str, str], now_us: int) -> Held | None:
        held = self._holders.get(slot)
        return None if held is None else self._as_it_stands(held, now_us)

    def _as_it_stands(self, held: Held, now_us: int) -> Held | None:
        known = self._tasks[held.id]
        if known.removed:
            # One that is removed has lost its key, unless its time is not over.
            within_us = held.rule.within_us
            if within_us is None or now_us >= held.taken_us + within_us:
                return None
        return held._replace(state=known.state)

    def _judge_answers(self, commit: Commit) -> None:
        """The answers of a submit, as if each of its tasks had come alone after the others."""
        holders = dict(self._before)
        payloads: dict[str, tuple[str, int]] = {}
        for task, answer in zip(commit.arguments[0], commit.answer, strict=True):
            rule = rule_of(task.terms.organization, task.rare.options)
            if rule is None or (isinstance(answer, Submitted) and answer.replayed) or isinstance(answer, Invalid):
                continue
            held = holders.get(rule.slot)
            expected = _met(rule, held, commit.now_us)
            self._coverage.feats[f"{rule.on_conflict}: {expected}"] += 1
            told = self._told(answer, task.id, held)
            if told != expected:
                self._wrong(f"submit answered {answer!r} to {task.id} for {rule}: {told}, not {expected}: {held}")
            if expected in ("created", "replaced"):
                holders[rule.slot] = Held(task.id, commit.now_us, rule, TaskState.QUEUED, True)
                if task.id not in self._begun:
                    self._wrong(f"submit answered {answer}, and the task is not there")
            elif expected == "debounced" and held is not None:
                payloads[held.id] = (task.payload, _due_us(rule, held, commit.now_us))
            if expected not in ("created", "replaced") and task.id in self._begun:
                self._wrong(f"submit answered {answer}, and stored {task.id}")
            if expected == "replaced" and held is not None and self._tasks[held.id].state is not TaskState.CANCELLED:
                self._wrong(f"{task.id} replaced {held}, which is {self._tasks[held.id].state}")
        for id, (payload, due_us) in payloads.items():
            stored, stored_due_us = self._observer.standing(self._tasks[id].number)
            if stored_due_us is None and self._tasks[id].state in ENDED:
                # The claim that went along found its time over, in the same commit.
                stored_due_us = due_us
            if (bytes(stored or b""), stored_due_us) != (payload.encode(), due_us):
                self._wrong(f"{id} was debounced to {payload} at {due_us}, it has {stored!r} at {stored_due_us}")

    def _told(self, answer: Any, id: str, held: Held | None) -> str:
        if isinstance(answer, UniqueConflict):
            named = answer.fields.get("task_id")
            return "refused" if held is not None and named == held.id else f"refused for {named}"
        if not isinstance(answer, Submitted):
            return repr(answer)
        other = answer.outcome in ("existing", "debounced")
        right = (held is not None and answer.id == held.id) if other else answer.id == id
        return str(answer.outcome) if right else f"{answer.outcome} of another task"


def _holds(rule: Rule, held: Held, now_us: int) -> bool:
    over = rule.within_us is not None and now_us - held.taken_us >= rule.within_us
    return held.state is not None and str(held.state) in rule.states and not over


def _met(rule: Rule, held: Held | None, now_us: int) -> str:
    """What becomes of a task that comes for a key."""
    if held is None or not _holds(rule, held, now_us):
        return "created"
    if rule.on_conflict in ("return_existing", "throttle"):
        return "existing"
    if rule.on_conflict == "reject" or held.state not in WAITING or not held.alone:
        return "refused"
    return "replaced" if rule.on_conflict == "replace" else "debounced"


def _due_us(rule: Rule, held: Held, now_us: int) -> int:
    due_us = now_us + (rule.wait_us or 0)
    return due_us if rule.max_wait_us is None else max(now_us, min(due_us, held.taken_us + rule.max_wait_us))
