"""Functions as handlers: their contract, and what cannot be one."""

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest

from perdure.domain.retry import Retry
from perdure.domain.task import Body
from perdure.errors import Invalid, Misuse, NotFound
from perdure.worker.context import Context, SyncContext
from perdure.worker.handler import Defaults, Handler
from perdure.worker.payload import BadPayload
from perdure.worker.registry import Registry


class Colour(enum.Enum):
    RED = "red"


class Line(msgspec.Struct):
    sku: str
    count: int = 1


@dataclass
class Address:
    street: str


class Customer(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


async def order(
    lines: list[Line],
    address: Address,
    customer: Customer,
    at: datetime,
    colour: Colour = Colour.RED,
    notes: dict[str, int] | None = None,
    tags: list[str] = [],  # noqa: B006
) -> Customer:
    return customer


async def whole(lines: list[Line], /, *, ctx: Context) -> int:
    return len(lines)


async def open_ended(number: int, **more: Any) -> int:
    return number


def plain(*, ctx: SyncContext) -> None: ...


def body(text: str) -> Body:
    return Body(text.encode())


def handler(function: Callable[..., Any], **options: Any) -> Handler:
    return Handler("a.kind", function, **options)


ORDER = (
    '{"lines":[{"sku":"a"},{"sku":"b","count":2}],"address":{"street":"s"},'
    '"customer":{"name":"n","age":3},"at":"2026-11-29T12:00:00Z"}'
)


def test_a_payload_is_converted_to_the_annotated_types() -> None:
    arguments = handler(order).convert(body(ORDER))
    assert arguments == {
        "lines": [Line("a"), Line("b", 2)],
        "address": Address("s"),
        "customer": Customer(name="n", age=3),
        "at": datetime(2026, 11, 29, 12, tzinfo=UTC),
        "colour": Colour.RED,
        "notes": None,
        "tags": [],
    }


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ('"count":2', '"count":"2"', "lines[1].count"),
        ('"street":"s"', '"street":5', "address.street"),
        ('"age":3', '"age":-3', "customer"),
        ('"at":"2026', '"at":"x', "at"),
        ('"lines":[', '"line":[', "line"),
        ('{"street":"s"}', "{}", "address.street"),
    ],
)
def test_a_mismatch_names_its_field(before: str, after: str, field: str) -> None:
    with pytest.raises(BadPayload) as caught:
        handler(order).convert(body(ORDER.replace(before, after)))
    assert caught.value.field == field


@pytest.mark.parametrize("text", ["", "[]", "nul", '{"lines":' + "[" * 2_000 + "]" * 2_000 + "}", "\ufeff{}"])
def test_what_is_no_such_object_is_a_bad_payload(text: str) -> None:
    with pytest.raises(BadPayload):
        handler(order).convert(body(text))


def test_an_unknown_encoding_is_a_bad_payload() -> None:
    with pytest.raises(BadPayload, match="aes"):
        handler(order).convert(Body(b"\x00", "aes"))


def test_a_call_is_bound_to_the_payload_that_the_worker_reads() -> None:
    subject = handler(order)
    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    raw = subject.bind(([Line("a")], Address("s")), {"customer": Customer(name="n", age=3), "at": at})
    arguments = subject.convert(Body(raw.data))
    assert arguments["customer"] == Customer(name="n", age=3)
    assert arguments["at"] == at


@pytest.mark.parametrize(
    ("args", "fields", "field"),
    [
        ((), {"number": "x"}, "number"),
        ((), {}, "number"),
        ((1, 2), {}, "payload"),
        ((1,), {"number": 1}, "number"),
        ((), {"number": object()}, "number"),
        ((), {"number": 1, "more": float("nan")}, "more"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_with_its_field(
    args: tuple[Any, ...], fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        handler(open_ended).bind(args, fields)
    assert caught.value.fields["field"] == field


def test_fields_that_a_parent_fills_may_be_left_out_of_a_call() -> None:
    assert handler(open_ended).bind((), {}, bound={"number"}).data == b"{}"


def test_a_positional_only_parameter_takes_the_whole_payload() -> None:
    subject = handler(whole)
    assert subject.bind(([Line("a")],), {}).data == b'[{"sku":"a","count":1}]'
    assert subject.convert(body('[{"sku":"a"}]')) == {"lines": [Line("a")]}
    assert subject.context_name == "ctx"
    assert subject.schema is not None
    assert subject.schema["type"] == "array"


async def test_the_whole_payload_arrives_by_position() -> None:
    assert await handler(whole).call({"lines": [1, 2], "ctx": None}) == 2


def test_further_fields_go_to_the_open_end() -> None:
    assert handler(open_ended).convert(body('{"number":1,"x":[2]}')) == {"number": 1, "x": [2]}


def test_the_schema_describes_all_types() -> None:
    schema = handler(order).schema
    assert schema is not None
    assert schema["required"] == ["lines", "address", "customer", "at"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["customer"]["properties"]["age"]["minimum"] == 0
    assert set(schema["$defs"]) >= {"Line", "Address"}
    msgspec.json.encode(schema)


def test_types_that_cannot_be_described_have_no_schema() -> None:
    class Odd:
        pass

    async def odd(thing: Any) -> None: ...

    odd.__annotations__["thing"] = Odd
    assert handler(odd).schema is None


def test_functions_know_how_they_run() -> None:
    assert handler(order).isolation == "async"
    assert handler(plain).isolation == "thread"
    assert handler(functools.partial(open_ended, x=1)).isolation == "async"


async def with_args(*numbers: int) -> None: ...


async def with_two(a: int, /, b: int) -> None: ...


async def with_sync_context(*, ctx: SyncContext) -> None: ...


async def with_unknown(thing: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (order, {"isolation": "process"}, "does not have yet"),
        (order, {"defaults": Defaults(redact=True)}, "does not have yet"),
        (order, {"isolation": "thread"}, "runs on the event loop"),
        (plain, {"isolation": "async"}, "runs in a thread"),
        (plain, {"isolation": "moon"}, "'async' or 'thread'"),
        (with_args, {}, r"\*args"),
        (with_two, {}, "positional-only"),
        (with_sync_context, {}, "perdure.Context"),
        (with_unknown, {}, "Nowhere"),
        (order, {"retry_on": (int,)}, "exception types"),
    ],
)
def test_what_cannot_be_a_handler_is_refused_with_the_reason(
    function: Callable[..., Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(Misuse, match=said):
        handler(function, **options)


def test_a_kind_is_registered_once() -> None:
    registry = Registry()
    registry.add("a", order)
    with pytest.raises(Misuse, match=r"registered already, by .*order"):
        registry.add("a", plain)
    with pytest.raises(Misuse, match="registered already"):
        registry.add("b", plain, upcasters={"a": dict})
    assert registry.kinds == ("a",)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(Misuse, match="timout"):
        Registry().add("a", order, timout=3)


def test_definitions_tell_the_defaults_of_all_kinds() -> None:
    registry = Registry()
    registry.add(
        "b.v2", plain, upcasters={"b.v1": dict}, retry=Retry(7), queue="q", timeout=3.5, capabilities=["y", "x"]
    )
    first, second = registry.definitions()
    assert (first.kind, second.kind) == ("b.v2", "b.v1")
    assert first.schema == {
        "title": "BV2",
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert second.schema is None
    assert (second.queue, second.retry, second.timeout, second.capabilities) == ("q", Retry(7), 3.5, ["x", "y"])
    assert registry.find("b.v1") is registry.get("b.v2")
    with pytest.raises(NotFound):
        registry.get("c")


def test_a_result_is_read_as_the_handlers_return_type_where_it_fits() -> None:
    subject = handler(order)
    assert subject.decode_result(body('{"name":"n","age":1}')) == Customer(name="n", age=1)
    assert subject.decode_result(body('{"other":1}')) == {"other": 1}
