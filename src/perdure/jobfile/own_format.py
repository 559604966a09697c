"""perdure's own format: a `JobRequest` written as YAML or JSON, refused with the place of what is wrong."""

import re
from typing import NoReturn

import msgspec

from perdure import mistakes
from perdure.documents import fault_in
from perdure.domain.likeness import nearest
from perdure.engine.requests import Dependency, JobRequest, JobTaskRequest
from perdure.jobfile.dag import check_dag, depend_on_bound
from perdure.jobfile.document import Document, Path, steps_of, written

_AT = re.compile(r" - at `(?P<path>[^`]*)`$")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>.*)`")
_MISSING_FIELD = re.compile(r"Object missing required field `(?P<field>.*)`")


def decode(document: Document) -> JobRequest:
    """The job that a document describes, checked to be a DAG. Raises `Invalid` with the place."""
    fault = fault_in(document.value, JobRequest)
    if fault is not None:
        document.refuse(steps_of(fault.path), fault.message)
    try:
        request = msgspec.convert(document.value, JobRequest)
    except msgspec.ValidationError as error:
        _refuse_shape(document, error)
    depend_on_bound(document, request)
    check_dag(document, request, [("tasks", index, "name") for index in range(len(request.tasks))])
    return request


def _refuse_shape(document: Document, error: msgspec.ValidationError) -> NoReturn:
    message = str(error)
    at = _AT.search(message)
    path = steps_of(at["path"].removeprefix("$")) if at else ()
    fact = _AT.sub("", message)
    if unknown := _UNKNOWN_FIELD.fullmatch(fact):
        _refuse_unknown(document, path, unknown["field"], _fields_at(path))
    if missing := _MISSING_FIELD.fullmatch(fact):
        document.refuse(path, f"the field {missing['field']!r} is missing; add it")
    wanted, _ = mistakes.said(error, JobRequest)
    if fact.startswith("Expected `str") and path and not isinstance(document.value, list):
        wanted += "; put it in quotes"
    document.refuse(path, wanted)


def _refuse_unknown(document: Document, path: Path, field: str, known: tuple[str, ...]) -> NoReturn:
    near = next((each for each in known if each.startswith(field)), None) or nearest(field, known)
    advice = f"; did you mean {near!r}?" if near else f"; known are {', '.join(sorted(known))}" if known else ""
    what = f"{written(path)} has" if path else "a job has"
    document.refuse((*path, field), f"{what} no field {field!r}{advice}")


def _fields_at(path: Path) -> tuple[str, ...]:
    match path:
        case ():
            return JobRequest.__struct_fields__
        case ("tasks", int()):
            return JobTaskRequest.__struct_fields__
        case ("tasks", int(), "depends_on", int()):
            return Dependency.__struct_fields__
        case _:
            return ()
