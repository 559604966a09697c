"""Acts on all tasks that a filter lets through: what operators ask for, and whether that and nothing else was done."""

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from perdure.domain.states import TaskState
from perdure.engine.act_on_matching import Act, Matching, Step
from perdure.engine.requests import Principal
from perdure.store.views import TaskFilter
from simulation.known import Commit, Known
from simulation.known import Step as Move

if TYPE_CHECKING:
    from simulation.world import World

OPERATOR = Principal("operator")
VERBS: Mapping[Act, str] = {
    Act.CANCEL: "cancel",
    Act.REQUEUE: "redrive",
    Act.DISCARD: "discard",
    Act.PURGE: "purge",
}
STEPS_MAX = 200


class ActAccount:
    """Which tasks are to be acted on by which process."""

    def __init__(self, wrong: Callable[[str], None], tasks: Mapping[str, Known]) -> None:
        self._wrong = wrong
        self._tasks = tasks
        self._asked: dict[str, tuple[str, TaskFilter]] = {}
        """By process: the verb that it may use now, and for which tasks."""
        self._lasting: dict[str, set[str]] = {}
        """By process: tasks that have been fit for the act all the while, and it was not done to them."""
        self._discarded: set[str] = set()

    def begin(self, process: str, act: Act, where: TaskFilter) -> None:
        """A process acts from now on."""
        self._asked[process] = (VERBS[act], where)
        fit = {id for id, known in self._tasks.items() if _fits(act, where, known)}
        self._lasting[process] = fit - self._discarded

    def end(self, process: str) -> set[str]:
        """It has come to the end. What has been fit all the while and was left out."""
        del self._asked[process]
        return self._lasting.pop(process)

    def before(self, commit: Commit) -> None:
        """A commit is going to be looked at."""
        if commit.verb == "discard":
            # What is done with needs no more acts.
            self._discarded.update(commit.arguments[1])
            for lasting in self._lasting.values():
                lasting.difference_update(commit.arguments[1])
        verb, where = self._asked.get(commit.who, ("", None))
        if commit.verb != verb or where is None:
            return
        named = commit.arguments[1] if verb in ("discard", "purge") else [each.task_id for each in commit.arguments[0]]
        for id in named:
            if not _matches(where, self._tasks[id]):
                self._wrong(f"{verb} by filter {where} named {id}, which is {self._tasks[id].row}")
        for lasting in self._lasting.values():
            lasting.difference_update(named)

    def moved(self, commit: Commit, step: Move) -> None:
        """A task has moved: if it is not fit any more, nobody has to find it."""
        if step.begins:
            self._discarded.discard(step.known.row.id)
        for process, lasting in self._lasting.items():
            fit = VERBS[Act.CANCEL] == self._asked[process][0]
            if step.known.row.id in lasting and not (fit and step.known.open and step.new is not TaskState.CANCELLING):
                lasting.discard(step.known.row.id)

    def after(self, commit: Commit) -> None:
        """Nothing more is to be judged."""


async def act(world: "World", process: str, chance: random.Random, ask: Callable[[Matching], Awaitable[Step]]) -> None:
    """Go through all tasks of a filter, step by step."""
    chosen = chance.choice((Act.CANCEL, Act.REQUEUE, Act.REQUEUE, Act.DISCARD, Act.DISCARD, Act.PURGE))
    where = TaskFilter() if chosen is not Act.CANCEL and chance.random() < 0.5 else _filter(chance, world)
    asked = Matching(chosen, where, limit=chance.choice((1, 3, 100)), rate=_rate(chance, chosen))
    acts = world.witness.acts
    if chance.random() < 0.2:
        await ask(asked._replace(dry_run=True))
        world.coverage.feats["an act by filter only counted"] += 1
        return
    acts.begin(process, chosen, where)
    done = False
    try:
        for _ in range(STEPS_MAX):
            step = await ask(asked)
            _judge(world, asked, step)
            asked = asked._replace(cursor=step.cursor)
            done = step.cursor is None
            if done:
                break
    finally:
        left = acts.end(process)
    if done and left:
        world.witness.wrong(f"{chosen} by filter {where} went to the end and left out {sorted(left)}")


def _judge(world: "World", asked: Matching, step: Step) -> None:
    done = sum(step.counts.values()) + len(step.refused)
    if done != step.matched or step.matched > asked.limit:
        world.witness.wrong(f"an act by filter {asked} told of {step}")
    world.coverage.feats[f"{asked.act} by filter"] += bool(step.matched)


def _rate(chance: random.Random, act: Act) -> int | None:
    return chance.choice((None, 1, 5)) if act is Act.REQUEUE else None


def _filter(chance: random.Random, world: "World") -> TaskFilter:
    sort = chance.choice(("kind", "queue", "job"))
    if sort == "kind":
        return TaskFilter(kinds=(chance.choice(("act", "hasty", "other", "narrow", "ordered")),))
    if sort == "queue" or not world.log_of_clients.jobs:
        return TaskFilter(queues=(chance.choice(("aside", "plain")),))
    return TaskFilter(job=chance.choice(sorted(world.log_of_clients.jobs)))


def _matches(where: TaskFilter, known: Known) -> bool:
    row: Any = known.row
    if where.job is not None and known.row.job_id != where.job:
        return False
    return (
        row.organization == "default"
        and row.kind in (where.kinds or (row.kind,))
        and row.queue in (where.queues or (row.queue,))
    )


def _fits(act: Act, where: TaskFilter, known: Known) -> bool:
    if known.removed or not _matches(where, known):
        return False
    if act is Act.CANCEL:
        return known.open and known.state is not TaskState.CANCELLING
    return act is Act.REQUEUE and known.state is TaskState.DEAD_LETTERED
