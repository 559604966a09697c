"""Declared sets of schedules in files: `set`, its name, and `schedules`, their definitions by name."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from perdure.documents import convert
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.errors import Invalid, Refused
from perdure.jobfile.dag import depend_on_bound
from perdure.jobfile.document import Document, Path, located, steps_of
from perdure.jobfile.reading import read_document

_FIELDS = ("set", "schedules")


class ScheduleFile(NamedTuple):
    """A declared set, and where it stands."""

    set: str
    schedules: Mapping[str, ScheduleDefinition]
    document: Document

    def kinds(self) -> AbstractSet[str]:
        """The kinds of all that they make."""
        made = [each.task for each in self.schedules.values() if each.task is not None]
        made += [task for each in self.schedules.values() if each.job is not None for task in each.job.tasks]
        return {each.kind for each in made}

    def placed(self, schedule: str, refusal: Refused) -> Refused:
        """The same refusal of one schedule, with the place in the file that it is about."""
        field = refusal.fields.get("field")
        rest: Path = tuple(field.split(".")) if isinstance(field, str) else ()
        place = self.document.place(("schedules", schedule, *rest))
        where = located(self.document.name, place)
        return type(refusal)(f"{where}: {refusal.message}", **refusal.fields)


def read_schedule_file(path: FilePath) -> ScheduleFile:
    """The set in a `.json`, `.yaml` or `.yml` file. Raises `Malformed` and `Invalid`, with the place."""
    document = read_document(path)
    value = document.value
    if not isinstance(value, dict):
        document.refuse((), "a set of schedules is an object with set and schedules")
    for field in value:
        if field not in _FIELDS:
            document.refuse((field,), f"a set of schedules has no field {field!r}; known are {', '.join(_FIELDS)}")
    if not isinstance(value.get("set"), str):
        document.refuse(
            ("set",),
            "name the set by a line such as `set: reports`: applied again, what is gone from the set is deleted",
        )
    schedules = value.get("schedules")
    if not isinstance(schedules, dict):
        document.refuse(("schedules",), "give the schedules by their names")
    return ScheduleFile(
        value["set"], {name: _definition(document, name, each) for name, each in schedules.items()}, document
    )


def _definition(document: Document, name: str, value: Any) -> ScheduleDefinition:
    try:
        definition = convert(value, ScheduleDefinition, "")
    except Invalid as error:
        path = str(error.fields.get("field") or "")
        document.refuse(("schedules", name, *steps_of(path)), error.message.removeprefix(f"{path}: "))
    if definition.job is not None:
        depend_on_bound(document, definition.job, ("schedules", name, "job"))
    return definition
