"""Instants of a schedule that somebody asks for: one there and then, or those of a time that has passed."""

from collections.abc import Sequence
from itertools import islice, takewhile

import msgspec

from perdure.domain import limits
from perdure.domain.schedule import Cause
from perdure.domain.task import Job, Task
from perdure.domain.timing import instants
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import ScheduleDefinition, Understood
from perdure.engine.schedule_work import ScheduleWork
from perdure.errors import Invalid, UniqueConflict
from perdure.store.schedules import Asked, Made, Schedule, Schedules


class AskSchedule:
    """Makes what a schedule makes, whatever its state and its overlap policy say: a person's word goes before both."""

    def __init__(self, schedules: Schedules, work: ScheduleWork) -> None:
        self._schedules = schedules
        self._work = work

    async def trigger(
        self, definition: ScheduleDefinition, schedule: Schedule, by: Principal, now_us: int, key: str | None = None
    ) -> Made:
        """One instant, now; what an earlier one has made, where it was asked for under the same key. Raises a `Refused`
        where what it makes is refused.
        """
        if key is not None:
            definition = _keyed(definition, key)
        while True:
            work = await self._work.build(definition, schedule.organization, schedule.name, by.name, now_us)
            asked = Asked(schedule.organization, schedule.name, Cause.TRIGGER, [(now_us, work)])
            (made,) = await self._schedules.ask(asked)
            if isinstance(made.error, UniqueConflict) and made.error.fields.get("replayed"):
                return await self._before(schedule, made)
            if made.error is not None:
                raise made.error
            if not made.replayed or work.id in (made.task_id, made.job_id):
                return made._replace(replayed=False)
            # This very microsecond has made something already: the next one has not.
            now_us += 1

    async def _before(self, schedule: Schedule, made: Made) -> Made:
        """What the earlier instant has made, and when that was, as far as the latest instants tell."""
        there = {} if made.error is None else made.error.fields
        task_id, job_id = there.get("task_id"), there.get("job_id")
        fires = await self._schedules.fires(schedule.organization, schedule.name, None, limits.LIST_MAX_ROWS)
        instant_us = next((each.first_us for each in fires if (each.task_id, each.job_id) == (task_id, job_id)), None)
        return Made(made.instant_us if instant_us is None else instant_us, task_id, job_id, replayed=True)

    async def backfill(
        self, understood: Understood, schedule: Schedule, by: Principal, start_us: int, end_us: int, now_us: int
    ) -> Sequence[Made]:
        """The instants of a range, in order. Raises `Invalid`."""
        if end_us <= start_us:
            raise Invalid("the end of a backfill must be after its start", field="end")
        if end_us > now_us:
            raise Invalid("a backfill is of a time that has passed: what is to come comes by itself", field="end")
        most = limits.BACKFILL_MAX_INSTANTS
        come = takewhile(lambda instant: instant < end_us, instants(understood.timing, start_us - 1))
        wanted = list(islice(come, most + 1))
        if len(wanted) > most:
            raise Invalid(f"this range has more than {most:,} instants: backfill it piece by piece", field="end")
        made: list[Made] = []
        step = limits.FIRE_MAX_TASKS if understood.definition.job is None else limits.FIRE_MAX_JOBS
        for place in range(0, len(wanted), step):
            works: list[tuple[int, Task | Job]] = [
                (
                    instant,
                    await self._work.build(
                        understood.definition, schedule.organization, schedule.name, by.name, instant
                    ),
                )
                for instant in wanted[place : place + step]
            ]
            asked = Asked(schedule.organization, schedule.name, Cause.BACKFILL, works)
            made += await self._schedules.ask(asked)
        return made


def _keyed(definition: ScheduleDefinition, key: str) -> ScheduleDefinition:
    task, job = definition.task, definition.job
    return msgspec.structs.replace(
        definition,
        task=None if task is None else msgspec.structs.replace(task, idempotency_key=key),
        job=None if job is None else msgspec.structs.replace(job, idempotency_key=key),
    )
