"""What is refused is told in plain words, with its place: for every field and every bound that `/openapi.json` tells.

Made from the document: whoever adds a field or a bound has its refusal read here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from gateway.asking import Answered, Asker
from gateway.test_every_route import example
from perdure.gateway.routes import BY_NAME, ROUTES

CODE = re.compile(
    r"`|\^\[|\\[usdw]|[Ee]xpected|regex|pattern|RFC ?3339|ISO ?8601|msgspec|Struct|datetime\.|Traceback|<class"
    r"|\de\+\d|\b(?:int|float|str|bool|dict|list\[|tuple|NoneType|isinstance|None|True|False)\b"
)
"""What belongs to a program and not to a sentence."""
DEPTH_MAX = 4
OF_EACH_TYPE: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 7,
    "number": 1.5,
    "string": "no such",
    "array": [[{}]],
    "object": {"no such": [1]},
}
TOO_MANY_MAX = 2_000
"""Longer lists than this are not sent."""


class Wrong(NamedTuple):
    """A value that breaks one constraint, at a path, and the whole that it makes."""

    path: str
    whole: Any


class Schemas(NamedTuple):
    """The components of a document, by which its references are resolved."""

    components: dict[str, Any]

    def choices(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        """What a value may be, each without references."""
        if "$ref" in schema:
            rest = {name: each for name, each in schema.items() if name != "$ref"}
            return self.choices({**self.components[schema["$ref"].rpartition("/")[2]], **rest})
        found = schema.get("anyOf") or schema.get("oneOf")
        if not found:
            return [schema]
        rest = {name: each for name, each in schema.items() if name not in ("anyOf", "oneOf")}
        return [choice for each in found for choice in self.choices({**rest, **each})]

    def least(self, schema: dict[str, Any]) -> Any:
        """The least value that a schema takes."""
        first = self.choices(schema)[0]
        if "const" in first or "enum" in first:
            return first.get("const", first.get("enum", [None])[0])
        if first.get("type") == "object":
            properties = first.get("properties", {})
            return {name: self.least(properties[name]) for name in first.get("required", ())}
        by_type = {"array": [], "integer": first.get("minimum", 0), "number": first.get("minimum", 0), "boolean": False}
        text = "01990000-0000-7000-8000-000000000001" if first.get("format") == "uuid" else "a"
        return by_type.get(
            first.get("type", ""), "2026-12-24T18:00:00Z" if first.get("format") == "date-time" else text
        )

    def wrongs(
        self, schema: dict[str, Any], path: str, around: Callable[[Any], Any], given: Any = None
    ) -> Iterator[Wrong]:
        """Values of which each breaks one constraint of a schema, or of what lies within; `given`: one that fits."""
        choices = self.choices(schema)
        types = {each.get("type") for each in choices}
        types |= {"integer"} if "number" in types else set()
        if None not in types:
            yield from (Wrong(path, around(value)) for name, value in OF_EACH_TYPE.items() if name not in types)
        for choice in choices:
            yield from (Wrong(path, around(value)) for value in self.beyond(choice))
            if path.count(".") < DEPTH_MAX:
                yield from self.within(choice, path, around, given)

    def within(self, choice: dict[str, Any], path: str, around: Callable[[Any], Any], given: Any) -> Iterator[Wrong]:
        """The same for the fields and items of a value."""
        if choice.get("type") == "array" and isinstance(choice.get("items"), dict):
            item = given[0] if isinstance(given, list) and given else None
            yield from self.wrongs(choice["items"], f"{path}[0]", lambda inner: around([inner]), item)
        if choice.get("type") == "object":
            whole = {**self.least(choice), **(given if isinstance(given, dict) else {})}
            for name, field in choice.get("properties", {}).items():
                below = f"{path}.{name}" if path else name
                yield from self.wrongs(
                    field, below, lambda inner, name=name: around(whole | {name: inner}), whole.get(name)
                )
            for name in choice.get("required", ()):
                yield Wrong(f"{path}.{name}" if path else name, around({k: v for k, v in whole.items() if k != name}))
            if isinstance(choice.get("additionalProperties"), dict):
                yield from self.wrongs(choice["additionalProperties"], path, lambda inner: around({"a": inner}))

    def beyond(self, choice: dict[str, Any]) -> Iterator[Any]:
        """Values of the right type that are over a bound or of no form."""
        if "minimum" in choice:
            yield choice["minimum"] - 1
        if "maximum" in choice:
            yield choice["maximum"] + 1
        if choice.get("minLength"):
            yield ""
        if "maxLength" in choice:
            yield "x" * (choice["maxLength"] + 1)
        if "pattern" in choice or "format" in choice:
            yield from ("\x00 \N{DEGREE SIGN}", " ")
        if "enum" in choice:
            yield "nonsense"
        if choice.get("format") == "date-time":
            yield from ("tomorrow", "2026-12-01T08:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z")
        if "items" in choice and choice.get("maxItems", TOO_MANY_MAX) < TOO_MANY_MAX:
            yield [self.least(choice["items"])] * (choice["maxItems"] + 1)
        if "propertyNames" in choice:
            yield {"": self.least(choice["additionalProperties"])}


def problems(answer: Answered) -> Iterator[dict[str, Any]]:
    """The problem of a request, or those of its items."""
    if answer.status >= 400:
        yield answer.json
    elif answer.data and isinstance(answer.json, dict):
        for value in answer.json.values():
            for item in value if isinstance(value, list) else ():
                if isinstance(item, dict) and item.get("problem"):
                    yield item["problem"]


def check(answer: Answered, wrong: Wrong) -> None:
    """Every problem is a sentence without code, and one of bad input names the field."""
    assert answer.status < 500, (wrong.path, answer.data)
    for problem in problems(answer):
        told = re.sub(r"'(?:[^'\\]|\\.)*'|\{.*\}", "''", problem["detail"])
        assert not CODE.search(told), (wrong.path, problem["detail"])
        if problem["status"] in (400, 422):
            assert problem.get("field"), (wrong.path, problem)


@pytest.fixture
async def schemas(asker: Asker) -> Schemas:
    return Schemas((await asker.ask("GET", "/openapi.json")).json["components"]["schemas"])


@pytest.mark.parametrize("name", [route.name for route in ROUTES if route.body is not None])
async def test_a_body_that_breaks_one_constraint_is_refused_in_plain_words(name: str, asker: Asker, schemas: Schemas):
    route = BY_NAME[name]
    path, body, query = await example(name, asker)
    described = (await asker.ask("GET", "/openapi.json")).json["paths"][route.path][route.method.lower()]
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    refused = 0
    for wrong in schemas.wrongs(schema, "", lambda inner: inner, body):
        answer = await asker.ask(route.method, path, wrong.whole, query=query)
        check(answer, wrong)
        refused += any(True for _ in problems(answer))
    assert refused


@pytest.mark.parametrize("name", [route.name for route in ROUTES if route.query is not None])
async def test_a_parameter_that_breaks_one_constraint_is_refused_in_plain_words(
    name: str, asker: Asker, schemas: Schemas
):
    route = BY_NAME[name]
    path, body, query = await example(name, asker)
    described = (await asker.ask("GET", "/openapi.json")).json["paths"][route.path][route.method.lower()]
    refused = 0
    for parameter in described["parameters"]:
        if parameter["in"] != "query":
            continue
        for wrong in schemas.wrongs(parameter["schema"], parameter["name"], lambda inner: inner):
            asked = {**dict(query), parameter["name"]: wrong.whole}
            answer = await asker.ask(route.method, path, body, query=asked)
            check(answer, wrong)
            refused += answer.status == 400
    assert refused
