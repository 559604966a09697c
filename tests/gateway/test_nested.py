"""What lies within a body, at any depth: a field that nobody knows and a value of a wrong type are refused by name.

Made from the table of routes: whoever adds a document or a field to a body has it tested here.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec import inspect

from gateway.asking import Asker
from perdure.errors import Invalid, Malformed, Refused
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.request import Reading
from perdure.gateway.routes import ROUTES

STRANGE = "nobody_has_this"
OF_NO_TYPE = [[{}]]
JSON = {b"content-type": b"application/json"}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "Retry": {"max_attempts": 2},
    "Unique": {"by": "customer"},
    "Limit": {"concurrency": 1},
    "Breaker": {},
}
"""One that breaks no rule, for each type of document that has rules of its own."""
TEXTS = {"^[0-9a-f]{64}$": "0" * 64}
WITH_BODIES = [route for route in ROUTES if route.body is not None]


class Place(NamedTuple):
    """An object within a body: its path, its type, and what makes a body with such an object there."""

    path: str
    told: Any
    around: Callable[[Any], Any]


def plain(told: Any) -> Any:
    return plain(told.type) if isinstance(told, inspect.Metadata) else told


def example(told: Any) -> Any:
    """The least that a type takes."""
    told = plain(told)
    match told:
        case inspect.StructType():
            body = {} if told.tag_field is None else {told.tag_field: told.tag}
            return body | {field.encode_name: example(field.type) for field in told.fields if field.required}
        case inspect.DataclassType():
            return DOCUMENTS[told.cls.__name__]
        case inspect.ListType() | inspect.VarTupleType():
            return []
        case inspect.DictType():
            return {}
        case inspect.UnionType():
            return example(told.types[0])
        case inspect.EnumType():
            return next(iter(told.cls)).value
        case inspect.LiteralType():
            return told.values[0]
        case inspect.DateTimeType():
            return "2026-12-24T18:00:00+01:00"
        case inspect.StrType():
            return "a" if told.pattern is None else TEXTS[told.pattern]
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return told.ge or 0
        case _:
            return None


def objects(told: Any, path: str = "", around: Callable[[Any], Any] = lambda inner: inner) -> Iterator[Place]:
    """All objects that may lie within a value."""
    told = plain(told)
    match told:
        case inspect.UnionType():
            for each in told.types:
                yield from objects(each, path, around)
        case inspect.StructType() | inspect.DataclassType():
            yield Place(path, told, around)
            whole = example(told)
            for field in told.fields:
                name = field.encode_name
                below = f"{path}.{name}" if path else name
                yield from objects(field.type, below, lambda inner, name=name: around(whole | {name: inner}))
        case inspect.ListType() | inspect.VarTupleType():
            yield from objects(told.item_type, f"{path}[0]", lambda inner: around([inner]))
        case _:
            return


def is_open(told: Any) -> bool:
    """Whether a value takes any JSON."""
    told = plain(told)
    if isinstance(told, inspect.UnionType):
        return any(is_open(each) for each in told.types)
    return isinstance(told, inspect.AnyType | inspect.RawType)


def refused_field(reading: Reading, body: Any) -> str | None:
    """The field that a body is refused for; `None` when it is taken."""
    try:
        reading.body(JSON, msgspec.json.encode(body))
    except (Malformed, Invalid) as refusal:
        return str(refusal.fields["field"])
    return None


@pytest.mark.parametrize("route", WITH_BODIES, ids=lambda route: route.name)
def test_whatever_nobody_knows_is_refused_wherever_it_lies(route):
    reading = Reading(route, GatewayLimits())
    for place in objects(inspect.type_info(route.body)):
        whole = example(place.told)
        assert refused_field(reading, place.around(whole)) is None, place.path
        field = f"{place.path}.{STRANGE}" if place.path else STRANGE
        assert refused_field(reading, place.around(whole | {STRANGE: 1})) == field


@pytest.mark.parametrize("route", WITH_BODIES, ids=lambda route: route.name)
def test_whatever_has_a_wrong_type_is_refused_wherever_it_lies(route):
    reading = Reading(route, GatewayLimits())
    for place in objects(inspect.type_info(route.body)):
        for field in place.told.fields:
            if is_open(field.type):
                continue
            name = f"{place.path}.{field.encode_name}" if place.path else field.encode_name
            refused = refused_field(reading, place.around(example(place.told) | {field.encode_name: OF_NO_TYPE}))
            assert refused is not None, name
            assert refused.startswith(name), (refused, name)


async def test_a_refusal_is_short_however_long_the_name_is_that_it_is_about(asker: Asker):
    name = "ä" * 100_000
    for body in ({name: 1}, {"kind": "k", "retry": {name: 1}}, {"kind": "k", "unique": {"on_conflict": name}}):
        refused = await asker.ask("POST", "/v1/tasks", body)
        assert refused.status == 422
        assert refused.json["code"] == "invalid"
        assert refused.json["field"]
        assert len(refused.data) < 10_000


def test_a_name_that_is_written_in_escapes_hides_nothing():
    [route] = [each for each in ROUTES if each.name == "submit_tasks"]
    data = b'{"kind":"k","r\\u0065try":{"max_atempts":3}}'
    with pytest.raises(Refused) as caught:
        Reading(route, GatewayLimits()).body(JSON, data)
    assert caught.value.fields["field"] == "retry.max_atempts"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"retry": {"jitter": 2}}, "retry.jitter"),
        ({"unique": {"on_conflict": "debounce"}}, "unique.wait"),
        ({"unique": {"by": []}, "retry": {"base": -1}}, "retry.base"),
    ],
)
async def test_a_rule_that_a_document_breaks_is_told_with_its_path(asker: Asker, document: Any, field: str):
    answer = await asker.ask("POST", "/v1/tasks", {"kind": "k", **document})
    assert (answer.status, answer.json["code"], answer.json["field"]) == (422, "invalid", field)
    job = {"name": "j", "tasks": [{"name": "a", "kind": "k"}, {"name": "b", "kind": "k", **document}]}
    answer = await asker.ask("POST", "/v1/jobs", job)
    assert (answer.status, answer.json["code"], answer.json["field"]) == (422, "invalid", f"tasks[1].{field}")


async def test_a_rule_broken_in_one_item_of_a_list_is_told_in_its_place(asker: Asker):
    items = [
        {"kind": "k"},
        {"kind": "k", "unique": {"on_conflict": "debounce"}},
        {"kind": "k", "priority": 12},
        {"kind": "k", "retry": {"max_attempts": 5}},
    ]
    answer = await asker.ask("POST", "/v1/tasks", items, headers={"idempotency-key": "together"})
    assert answer.status == 207
    told = answer.json["tasks"]
    assert [each.get("problem", {}).get("field") for each in told] == [None, "unique.wait", "priority", None]
    assert [each.get("state") for each in told] == ["queued", None, None, "queued"]
    again = await asker.ask("POST", "/v1/tasks", items, headers={"idempotency-key": "together"})
    assert [each.get("id") for each in again.json["tasks"]] == [each.get("id") for each in told]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"kind": "k", "unique": {"bye": "x"}}, "[1].unique.bye"),
        ({"kind": "k", "unique": {"on_conflict": "debounce", "bye": "x"}}, "[1].unique.bye"),
        ({"kind": "k", "unique": {"on_conflict": "debounce"}, "nothing": 1}, "[1].nothing"),
        ({"kind": 5}, "[1].kind"),
    ],
)
async def test_an_item_that_cannot_be_read_has_nothing_of_its_list_stored(asker: Asker, item: Any, field: str):
    answer = await asker.ask("POST", "/v1/tasks", [{"kind": "k"}, item])
    assert (answer.status, answer.json["field"]) == (422, field)
    assert (await asker.ask("GET", "/v1/tasks")).json["tasks"] == []
