"""The duty that lets schedules make their tasks and jobs."""

import logging

from perdure.domain import limits
from perdure.domain.schedule import Passed, passed
from perdure.domain.task import Job, Task
from perdure.engine.schedule_definition import Understood, read_definition, understand
from perdure.engine.schedule_work import ScheduleWork
from perdure.engine.zones import Zones
from perdure.errors import Invalid, Refused
from perdure.store.ledger import Swept
from perdure.store.schedules import Firing, Schedule, Schedules, Seen
from perdure.store.wakeups import Topic

UNDERSTOOD_MAX = 10_000

_log = logging.getLogger("perdure.schedules")


class FireSchedules:
    """Decides about the instants that have come. Any number of runners: the store lets one of them decide."""

    name = "fire_schedules"
    interval_us = 30 * limits.SECOND_US
    wakes_on = Topic.CONTROL
    rest_us = 50_000

    def __init__(self, schedules: Schedules, work: ScheduleWork, zones: Zones, cancel_grace_us: int) -> None:
        self._schedules = schedules
        self._work = work
        self._zones = zones
        self._cancel_grace_us = cancel_grace_us
        self._understood: dict[tuple[str, str], tuple[tuple[int, str, int], Understood | None]] = {}

    async def run_once(self, now_us: int) -> Swept:
        """Look at some schedules whose time has come."""
        due = await self._schedules.due(limits.FIRE_MAX_SCHEDULES)
        firings = [firing for each in due.schedules if (firing := await self._firing(each, due.now_us)) is not None]
        fired = await self._schedules.fire(firings) if firings else []
        moved = sum(len(each.made) + each.skipped for each in fired)
        looks = [] if due.next_us is None else [due.next_us]
        for firing, each in zip(firings, fired, strict=True):
            if each.taken and firing.overlap == "queue_one":
                looks.append(due.now_us + limits.FIRE_WAIT_US)
            if each.taken and firing.look_us is not None:
                looks.append(firing.look_us)
        next_us = min(looks, default=None)
        late = next_us is not None and next_us <= due.now_us
        return Swept(moved, next_us, late or (moved > 0 and len(due.schedules) == limits.FIRE_MAX_SCHEDULES))

    async def _firing(self, schedule: Schedule, now_us: int) -> Firing | None:
        understood = self._understand(schedule, now_us)
        if understood is None:
            return None
        come = _come(schedule, understood, now_us)
        works: dict[int, Task | Job] = {}
        refusals: dict[int, str] = {}
        for instant in _that_may_fire(understood, come.due):
            built = await self._built(understood, schedule, instant)
            if isinstance(built, str):
                refusals[instant] = built
            else:
                works[instant] = built
        waiting = None if schedule.waiting_us is None else await self._built(understood, schedule, schedule.waiting_us)
        return Firing(
            schedule.organization,
            schedule.name,
            Seen(schedule.version, schedule.next_us, False),
            come.skipped,
            come.due,
            works,
            refusals,
            understood.definition.overlap,
            come.next_us,
            understood.look_us(come.next_us),
            None if isinstance(waiting, str) else waiting,
            waiting if isinstance(waiting, str) else None,
            grace_us=self._cancel_grace_us,
        )

    async def _built(self, understood: Understood, schedule: Schedule, instant: int) -> Task | Job | str:
        """What an instant makes, or why it makes nothing."""
        try:
            return await self._work.build(
                understood.definition, schedule.organization, schedule.name, schedule.actor, instant
            )
        except Refused as refusal:
            return refusal.message

    def _understand(self, schedule: Schedule, now_us: int) -> Understood | None:
        key = (schedule.organization, schedule.name)
        version = (schedule.version, schedule.document, schedule.anchor_us)
        known = self._understood.get(key)
        if known is not None and known[0] == version:
            return known[1]
        understood = None
        try:
            definition = read_definition(schedule.document)
            understood = understand(*key, definition, schedule.anchor_us, self._zones, now_us)
        except Invalid as error:
            _log.error("schedule %s makes nothing here: %s", schedule.name, error)
        if len(self._understood) >= UNDERSTOOD_MAX:
            self._understood.clear()
        self._understood[key] = (version, understood)
        return understood


def _come(schedule: Schedule, understood: Understood, now_us: int) -> Passed:
    """The instants that have come, and are past their jitter; no more of them than may make something at once."""
    if schedule.next_us is None:
        return Passed([], [], None)
    missed_before = understood.missed_before_us(now_us)
    come = passed(understood.timing, schedule.next_us, now_us, missed_before, False, limits.FIRE_MAX_INSTANTS)
    most = len(come.due)
    if understood.definition.overlap == "allow":
        most = limits.FIRE_MAX_TASKS if understood.definition.job is None else limits.FIRE_MAX_JOBS
    for place, instant in enumerate(come.due):
        if place == most or understood.due_us(instant) > now_us:
            return come._replace(due=come.due[:place], next_us=instant)
    return come


def _that_may_fire(understood: Understood, due: list[int]) -> list[int]:
    """The instants that the overlap policy may let make something: what the others would make need not be built."""
    if understood.definition.overlap == "allow":
        return due
    return due[-1:] if understood.definition.overlap == "cancel_running" else due[:1]
