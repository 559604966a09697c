"""What every history must be, whatever happened: one end in each generation, in order, agreeing with the task."""

from collections import Counter

from conformance.making import ORGANIZATION, World
from perdure.domain.states import ATTEMPT_ENDED, ENDED, HELD
from perdure.store.views import AttemptView, EventView, TaskFilter, TaskView

LOOKED_AT = 60
"""How many tasks of a test's store are looked at."""


async def broken_histories(world: World) -> list[str]:
    """One line for each fact that a history gets wrong."""
    page = await world.views.tasks(ORGANIZATION, TaskFilter(), LOOKED_AT)
    found: list[str] = []
    for task in page.rows:
        events = await world.views.events(ORGANIZATION, task.id)
        attempts = await world.views.attempts(ORGANIZATION, task.id)
        wrong = wrong_of_task(task, events, attempts)
        found += [f"{task.id} ({task.state}, generation {task.generation}): {fact}" for fact in wrong]
    return found


def wrong_of_task(task: TaskView, events: list[EventView], attempts: list[AttemptView]) -> list[str]:
    """The same for one task."""
    return [*_events_wrong(task, events), *_attempts_wrong(task, attempts)]


def _events_wrong(task: TaskView, events: list[EventView]) -> list[str]:
    wrong: list[str] = []
    ends = Counter(each.generation for each in events if each.type == "ended")
    expected = dict.fromkeys(range(1, task.generation + (task.state in ENDED)), 1)
    if ends != expected:
        wrong.append(f"ends by generation are {dict(ends)}, not {expected}")
    times = [each.at_us for each in events]
    if times != sorted(times):
        wrong.append("events are out of order")
    ids = [each.id for each in events]
    if ids != sorted(set(ids)):
        wrong.append("ids of events do not ascend")
    if not events or events[0].type != "submitted":
        wrong.append("it does not begin with its submission")
    last = [each for each in events if each.type == "ended"]
    if task.state in ENDED and last and (last[-1].data["state"], last[-1].at_us) != (task.state, task.finished_us):
        wrong.append(f"its last end is {last[-1].data} at {last[-1].at_us}, not {task.state} at {task.finished_us}")
    if any(not each.actor for each in events):
        wrong.append("an event has no actor")
    return wrong


def _attempts_wrong(task: TaskView, attempts: list[AttemptView]) -> list[str]:
    wrong: list[str] = []
    fences = [each.fence for each in attempts]
    if fences != sorted(set(fences)):
        wrong.append(f"fences do not grow: {fences}")
    live = [each for each in attempts if each.state not in ATTEMPT_ENDED]
    if len(live) != (task.state in HELD):
        wrong.append(f"it has {len(live)} live attempts")
    if live and live[0] is not attempts[-1]:
        wrong.append("its live attempt is not the last one")
    for each in attempts:
        stamps = [each.queued_us, each.leased_us, each.started_us, each.ended_us]
        known = [stamp for stamp in stamps if stamp is not None]
        if known != sorted(known):
            wrong.append(f"attempt {each.id} has its times out of order: {stamps}")
        if (each.ended_us is None) != (each.state not in ATTEMPT_ENDED):
            wrong.append(f"attempt {each.id} is {each.state} and ended at {each.ended_us}")
    return wrong
