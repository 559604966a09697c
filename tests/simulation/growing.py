"""Tasks of jobs that add tasks to their job while they run."""

import random
from typing import TYPE_CHECKING, Any

import msgspec

from perdure.engine.requests import JobTaskRequest, NewTask
from perdure.worker.context import Context
from simulation.coverage import Coverage

if TYPE_CHECKING:
    from simulation.world import World

DEEPEST = 2
"""What is added may add, so many times."""


def grow_steps(chance: random.Random, tasks: list[JobTaskRequest]) -> None:
    """Let some tasks of a job add others when they run: each attempt asks for the same."""
    for task in tasks:
        if chance.random() < 0.35:
            steps = task.payload["steps"]
            steps.insert(chance.randint(0, len(steps)), _growth(chance, task.name, tasks, 1))


def _growth(chance: random.Random, by: str, tasks: list[JobTaskRequest], depth: int) -> dict[str, Any]:
    if chance.random() < 0.25:
        items = [_payload(chance) for _ in range(chance.randint(0, 3))]
        return {"map": items, "reduce": chance.random() < 0.7, "before": _below(chance, by, tasks)}
    names = [f"{by}+{at}" for at in range(chance.randint(1, 3))]
    if chance.random() < 0.06 and len(tasks) > 1:
        # A name that the job has already: all of it is refused.
        names[-1] = tasks[0].name
    added = []
    for at, name in enumerate(names):
        above = names[:at] if chance.random() < 0.5 else []
        others = [each.name for each in tasks if each.name != by and each.name not in names]
        if others and chance.random() < 0.3:
            above = [*above, chance.choice(others)]
        payload = _payload(chance)
        if depth < DEEPEST and chance.random() < 0.2:
            payload["steps"].insert(0, _growth(chance, name, [], depth + 1))
        added.append(
            {
                "kind": chance.choice(("act", "act", "other", "narrow", "ordered")),
                "payload": payload,
                "name": name,
                "depends_on": above,
                "trigger": chance.choice(("all_succeeded", "all_done")),
                "before": _below(chance, by, tasks),
                "timeout": 6.0,
            }
        )
    return {"add": added}


def _payload(chance: random.Random) -> dict[str, Any]:
    end = "ok" if chance.random() < 0.8 else chance.choice(("error", "fail"))
    return {"steps": [round(chance.uniform(0.05, 1.0), 3)], "ends": [end], "key": chance.choice("ab")}


def _below(chance: random.Random, by: str, tasks: list[JobTaskRequest]) -> list[str]:
    """Tasks that depend on the one that adds."""
    children = [
        each.name
        for each in tasks
        if any((above if isinstance(above, str) else above.name) == by for above in each.depends_on)
    ]
    return [chance.choice(children)] if children and chance.random() < 0.4 else []


async def grow(step: dict[str, Any], ctx: Context, world: "World") -> None:
    """Take such a step."""
    coverage: Coverage = world.coverage
    if "map" in step:
        reduce = "act" if step["reduce"] else None
        into = "results" if step["reduce"] else None
        await ctx.map("act", step["map"], reduce=reduce, into=into, before=step["before"])
        coverage.feats["a task mapped items"] += 1
        return
    await ctx.add_tasks([msgspec.convert(each, NewTask) for each in step["add"]])
