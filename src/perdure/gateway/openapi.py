"""OpenAPI 3.1, made from the table of routes and the types of the bodies."""

import functools
import re
from copy import deepcopy
from typing import Any

import msgspec

from perdure import wire
from perdure.domain import limits
from perdure.domain.gate import WhenFull
from perdure.domain.states import TaskState
from perdure.domain.unique import OnConflict
from perdure.errors import Invalid, Malformed, PerdureError, TooLarge, Unavailable
from perdure.gateway.access import Forbidden
from perdure.gateway.problems import title_of, type_of
from perdure.gateway.refusals import HeadersTooLarge, TooManyRequests, TooSlow, UnsupportedMedia
from perdure.gateway.route import Route
from perdure.gateway.routes import ROUTES
from perdure.wire.problem import MEDIA_TYPE
from perdure.wire.shapes import UUID_PATTERN, WORD_PATTERN

STATUS_WORDS = {
    200: "Done.",
    201: "Made.",
    202: "Taken.",
    204: "Done; no body.",
    207: "Some items were refused: each item tells.",
    304: "It says the same as the ETag that was given; no body.",
    307: "It is elsewhere, as `Location` says.",
    503: "Not now.",
}
GROUPS = (
    ("/v1/worker/", "worker protocol"),
    ("/v1/tasks", "tasks"),
    ("/v1/jobs", "jobs"),
    ("/v1/dead-letters", "dead letters"),
    ("/v1/definitions", "definitions"),
    ("/v1/queues", "queues"),
    ("/v1/schedules", "schedules"),
    ("/v1/workers", "workers"),
    ("/v1/", "system"),
    ("/", "system"),
)
BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "Retry": {
        "max_attempts": (1, limits.MAX_ATTEMPTS_LIMIT),
        "base": (0, 2_592_000),
        "cap": (0, 2_592_000),
        "jitter": (0, 1),
    },
    "Breaker": {
        "window": (limits.seconds(limits.BREAKER_WINDOW_MIN_US), limits.seconds(limits.BREAKER_WINDOW_MAX_US)),
        "min_attempts": (1, limits.LIMIT_MAX),
        "open_for": (limits.seconds(limits.BREAKER_OPEN_MIN_US), limits.seconds(limits.BREAKER_OPEN_MAX_US)),
        "probes": (1, limits.BREAKER_PROBES_MAX),
    },
}
_SHARE = {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {"type": "null"}]}
_COUNT = {"type": "integer", "minimum": 1, "maximum": limits.LIMIT_MAX}
_FIELD = {"type": "string", "minLength": 1, "maxLength": limits.FIELD_NAME_MAX_BYTES, "format": "key"}
_BY = {"anyOf": [_FIELD, {"type": "array", "items": _FIELD, "maxItems": limits.LIMIT_BY_MAX, "uniqueItems": True}]}
_PER = {
    "type": "number",
    "minimum": limits.seconds(limits.LIMIT_PER_MIN_US),
    "maximum": limits.seconds(limits.LIMIT_PER_MAX_US),
}
_UNSAID = {
    "concurrency": {"type": "null"},
    "rate": {"type": "null"},
    "per": {"type": "null"},
    "ordered": {"const": False},
    "by": _BY,
    "when_full": {"const": str(WhenFull.QUEUE)},
}
_WHEN_FULL = {"enum": [str(each) for each in WhenFull]}
LIMIT_FORMS = [
    {"properties": _UNSAID | {"concurrency": _COUNT, "when_full": _WHEN_FULL}, "required": ["concurrency"]},
    {"properties": _UNSAID | {"rate": _COUNT, "per": _PER}, "required": ["rate", "per"]},
    {"properties": _UNSAID | {"ordered": {"const": True}}, "required": ["ordered"]},
]
"""A limit says one of three things, and leaves the others out or null."""
_WITHIN, _WAIT = (
    {"type": "number", "minimum": limits.seconds(low), "maximum": limits.seconds(high)}
    for low, high in (
        (limits.UNIQUE_WITHIN_MIN_US, limits.UNIQUE_WITHIN_MAX_US),
        (limits.UNIQUE_WAIT_MIN_US, limits.UNIQUE_WAIT_MAX_US),
    )
)
_NULL = {"type": "null"}
_STATES = {"type": "array", "items": {"enum": [str(each) for each in TaskState]}}
_UNIQUE = {"by": _BY, "states": {"type": "array", "maxItems": 0}, "within": _NULL, "wait": _NULL, "max_wait": _NULL}
_KEEPING = [str(each) for each in (OnConflict.REJECT, OnConflict.RETURN_EXISTING, OnConflict.REPLACE)]
_SOME_OF = {"type": "array", "minItems": 1}
CHOICES: dict[str, dict[str, Any]] = {
    "kinds": {"kinds": _SOME_OF},
    "queues": {"queues": _SOME_OF},
    "submitters": {"submitters": _SOME_OF},
    "labels": {"labels": {"type": "object", "minProperties": 1}},
    "job": {"job": {"type": "string"}},
}
"""Who cancels by filter says at least one of these."""
UNIQUE_FORMS: list[dict[str, Any]] = [
    {
        "properties": _UNIQUE
        | {"on_conflict": {"enum": _KEEPING}, "states": _STATES, "within": {"anyOf": [_WITHIN, _NULL]}}
    },
    {
        "properties": _UNIQUE
        | {
            "on_conflict": {"const": str(OnConflict.DEBOUNCE)},
            "wait": _WAIT,
            "max_wait": {"anyOf": [_WAIT, _NULL]},
        },
        "required": ["on_conflict", "wait"],
    },
    {
        "properties": _UNIQUE | {"on_conflict": {"const": str(OnConflict.THROTTLE)}, "within": _WITHIN},
        "required": ["on_conflict", "within"],
    },
]
"""What each choice needs, and what it leaves out."""
UNIQUE_IN_JOB: dict[str, Any] = {
    "properties": _UNIQUE
    | {"on_conflict": {"const": str(OnConflict.REJECT)}, "states": _STATES, "within": {"anyOf": [_WITHIN, _NULL]}},
    "additionalProperties": False,
}
"""A task of a job is stored or refused."""
NAMES_MAX_CHARS = {
    "queue": limits.QUEUE_MAX_CHARS,
    "kind": limits.KIND_MAX_CHARS,
    "schedule": limits.NAME_MAX_CHARS,
    "organization": limits.NAME_MAX_CHARS,
}
TAG = {"type": "string", "format": "etag"}
"""Format `etag`: one ETag in its quotes, or `*`."""
CONDITIONS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "GET": (("If-None-Match", TAG),),
    "PUT": (("If-Match", TAG), ("If-None-Match", {"type": "string", "enum": ["*"]})),
    "DELETE": (("If-Match", TAG),),
}
_VARIABLE = re.compile(r"\{(\w+)\}")


@functools.cache
def describe(version: str) -> dict[str, Any]:
    """The description of everything in the table of routes; the same document each time, which nobody changes."""
    types = _types()
    shapes, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    shape_of = dict(zip(map(repr, types), shapes, strict=True))
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, shape_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "perdure",
            "version": version,
            "description": "Durable tasks over HTTP. Errors are RFC 9457 problems; each type has a page here.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": _mended(components)},
    }


def _types() -> list[Any]:
    said = [part for route in ROUTES for part in (*answers_of(route), route.body) if part is not None]
    return [*{repr(each): each for each in said}.values(), wire.Problem]


def answers_of(route: Route) -> tuple[Any, ...]:
    """The types of good answers."""
    return route.answer if isinstance(route.answer, tuple) else (route.answer,)


def _operation(route: Route, shape_of: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [next(group for prefix, group in GROUPS if route.path.startswith(prefix))],
        "responses": _responses(route, shape_of),
    }
    if route.permission is not None:
        operation["x-permission"] = route.permission
    parameters = [*_variables(route), *_parameters(route), *_headers(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.optional,
            "content": {"application/json": {"schema": shape_of[repr(route.body)]}},
        }
    return operation


def _responses(route: Route, shape_of: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for status in route.statuses:
        answer: dict[str, Any] = {"description": STATUS_WORDS[status]}
        if route.conditional and status != 204:
            answer["headers"] = {"ETag": {"schema": {"type": "string"}}}
        if status == 307:
            answer["headers"] = {"Location": {"schema": {"type": "string"}}}
        if status in (204, 304):
            answers[str(status)] = answer
            continue
        shapes = [{"type": "string"} if each is None else shape_of[repr(each)] for each in answers_of(route)]
        shape = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
        answer["content"] = {route.media.split(";")[0]: {"schema": shape}}
        answers[str(status)] = answer
    by_status: dict[int, list[type[PerdureError]]] = {}
    for cls in problems_of(route):
        by_status.setdefault(cls.status, []).append(cls)
    for status, classes in by_status.items():
        told = answers.setdefault(str(status), {"description": ""})
        told["description"] = " ".join([told["description"], *(_told(cls) for cls in classes)]).strip()
        told.setdefault("content", {})[MEDIA_TYPE] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return answers


def problems_of(route: Route) -> list[type[PerdureError]]:
    """Every class of error that the route may answer with."""
    classes: list[type[PerdureError]] = [*route.problems, Malformed, HeadersTooLarge]
    if route.permission is not None:
        classes += [Invalid, Forbidden, Unavailable]
    if route.in_turn:
        classes.append(TooManyRequests)
    if route.body is not None:
        classes += [Invalid, TooLarge, UnsupportedMedia, TooSlow]
    return list(dict.fromkeys(classes))


def _told(cls: type[PerdureError]) -> str:
    return f"`{type_of(cls)}`: {title_of(cls)}."


def _variables(route: Route) -> list[dict[str, Any]]:
    return [_variable(name) for name in _VARIABLE.findall(route.path)]


def _variable(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "format": "uuid", "pattern": UUID_PATTERN}
    if name in NAMES_MAX_CHARS:
        schema = {"type": "string", "minLength": 1, "maxLength": NAMES_MAX_CHARS[name], "pattern": WORD_PATTERN}
    elif name == "code":
        schema = {"type": "string", "pattern": "^[a-z_]+$"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    shape, components = msgspec.json.schema_components([route.query], ref_template="#/components/schemas/{name}")
    inner = components[shape[0]["$ref"].rpartition("/")[2]]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in inner.get("required", ()),
            "schema": _without_null(_inlined(schema, components)),
        }
        for name, schema in inner["properties"].items()
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    if route.conditional:
        return [_header(*each) for each in CONDITIONS[route.method]]
    if not route.keyed:
        return []
    schema = {"type": "string", "minLength": 1, "maxLength": limits.IDEMPOTENCY_KEY_MAX_BYTES, "format": "key"}
    key = _header("Idempotency-Key", schema)
    return [key] if route.body is None else [key, _header("traceparent", {"type": "string"})]


def _header(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _inlined(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _inlined(components[schema["$ref"].rpartition("/")[2]], components)
        return {name: _inlined(each, components) for name, each in schema.items()}
    return [_inlined(each, components) for each in schema] if isinstance(schema, list) else schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out is not null when it is there."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    rest = {name: each for name, each in schema.items() if name != "anyOf" and each is not None}
    return rest | choices[0] if len(choices) == 1 else schema


def _mended(components: dict[str, Any]) -> dict[str, Any]:
    """What the types cannot say: rules between fields, further members of problems."""
    for name in ("SubmitTask", "SubmitJobTask"):
        components[name]["not"] = {"required": ["delay", "run_at"]}
    components["CancelMatching"]["anyOf"] = [{"required": [name], "properties": said} for name, said in CHOICES.items()]
    components["Problem"]["additionalProperties"] = True
    _loosen(components)
    for document, bounds in BOUNDS.items():
        for name, (low, high) in bounds.items():
            components[document]["properties"][name] |= {"minimum": low, "maximum": high}
    components["Breaker"]["properties"] |= {"share": _SHARE, "failures": {"anyOf": [_COUNT, _NULL]}}
    forms = [{"type": "object", "additionalProperties": False, **form} for form in LIMIT_FORMS]
    components["Limit"] = {"title": "Limit", "description": components["Limit"]["description"], "oneOf": forms}
    forms = [{"type": "object", "additionalProperties": False, **form} for form in UNIQUE_FORMS]
    components["Unique"] = {"title": "Unique", "description": components["Unique"]["description"], "oneOf": forms}
    for name in ("SubmitJobTask", "AddTask"):
        components[name]["properties"]["unique"] = {"anyOf": [{"type": "object", **UNIQUE_IN_JOB}, _NULL]}
    for document in ("Retry", "Breaker"):
        components[document]["additionalProperties"] = False
    return components


def _loosen(components: dict[str, Any]) -> None:
    """In a list of tasks, what breaks a rule is told in its place: there the documents have types, and no rules."""
    for name in ("Retry", "Unique"):
        components[f"Listed{name}"] = {**deepcopy(components[name]), "additionalProperties": False}
        there = components["SubmitListed"]["properties"][name.lower()]
        for each in there["anyOf"]:
            if "$ref" in each:
                each["$ref"] = f"#/components/schemas/Listed{name}"
