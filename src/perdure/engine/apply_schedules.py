"""A declared set of schedules: what is in it is created or changed, what is gone from it is deleted."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from perdure.domain import limits
from perdure.engine.names import check_title
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import ScheduleDefinition, definition_of, document_of
from perdure.engine.schedule_views import Definition, ScheduleOperations, ScheduleView
from perdure.errors import Invalid, PreconditionFailed, Refused

_NEVER = "never"
"""A tag that no schedule has: to put over that checks everything, and stores nothing."""

Action = Literal["create", "change", "delete", "keep"]


class Step(NamedTuple):
    """What is to be done with one schedule. `fields` are those that say something else."""

    name: str
    action: Action
    fields: tuple[str, ...] = ()


class ApplySchedules:
    """Converges to a set. The same set again changes nothing."""

    def __init__(self, operations: ScheduleOperations) -> None:
        self._operations = operations

    async def __call__(
        self, name: str, schedules: Mapping[str, Definition], by: Principal, *, dry_run: bool = False
    ) -> list[Step]:
        """What was done, or with `dry_run` what would be. Raises `Invalid` where a schedule belongs to another set.

        A dry run refuses what would be refused, and needs the same right. Schedules are put one after the other, by
        name; what is wrong with one leaves it and those after it undone.
        """
        check_title(name, "set")
        wanted = {each: _of_set(each, schedules[each], name) for each in sorted(schedules)}
        steps = [await self._step(each, definition, name, by) for each, definition in wanted.items()]
        gone = [each.name for each in await self._all(name, by) if each.name not in wanted]
        steps += [Step(each, "delete") for each in gone]
        for step in steps:
            if step.action in ("create", "change"):
                await self._put(step.name, wanted[step.name], by, dry_run)
            elif step.action == "delete" and not dry_run:
                await self._operations.delete(step.name, by)
        return steps

    async def _put(self, schedule: str, wanted: ScheduleDefinition, by: Principal, dry_run: bool) -> None:
        try:
            await self._operations.put(schedule, wanted, by, _NEVER if dry_run else None)
        except PreconditionFailed:
            if not dry_run:
                raise
        except Refused as refusal:
            raise of_schedule(schedule, refusal) from None

    async def _step(self, schedule: str, wanted: ScheduleDefinition, name: str, by: Principal) -> Step:
        before = await self._operations.get(schedule, by)
        if before is None:
            return Step(schedule, "create")
        owner = before.definition.get("set")
        if owner is not None and owner != name:
            raise Invalid(f"schedule {schedule!r} belongs to set {owner!r}, not to {name!r}", schedule=schedule)
        said = msgspec.json.decode(document_of(wanted))
        fields = {field for field in {*said, *before.definition} if said.get(field) != before.definition.get(field)}
        return Step(schedule, "change" if fields else "keep", tuple(sorted(fields)))

    async def _all(self, name: str, by: Principal) -> list[ScheduleView]:
        found: list[ScheduleView] = []
        cursor: str | None = None
        while True:
            page = await self._operations.page(by, limits.LIST_MAX_ROWS, cursor, name)
            found += page.schedules
            cursor = page.cursor
            if cursor is None:
                return found


def of_schedule(schedule: str, refusal: Refused) -> Refused:
    """The same refusal, which names the schedule that it is about."""
    return type(refusal)(f"schedule {schedule!r}: {refusal.message}", **{**refusal.fields, "schedule": schedule})


def _of_set(schedule: str, definition: Definition, name: str) -> ScheduleDefinition:
    try:
        understood = definition_of(definition)
    except Refused as refusal:
        raise of_schedule(schedule, refusal) from None
    if understood.set not in (None, name):
        raise Invalid(
            f"schedule {schedule!r} names set {understood.set!r} and stands in {name!r}", field="set", schedule=schedule
        )
    return msgspec.structs.replace(understood, set=name)
