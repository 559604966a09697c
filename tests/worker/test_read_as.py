"""Texts that a handler reads as dates, instants, ids: who submits without the handler is held to the same."""

import datetime
import decimal
import inspect
import json
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.engine.kinds import compile_schema
from perdure.engine.read_as import EXAMPLES, KEYWORD, TYPES
from perdure.worker.payload import BadPayload, PayloadCodec


def codec(wanted: Any) -> PayloadCodec:
    parameter = inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, annotation=wanted)
    return PayloadCodec("k", [parameter], {"value": wanted})


def both(of: PayloadCodec, value: Any) -> tuple[bool, bool]:
    """Whether the schema takes it, and whether the handler does."""
    payload = {"value": value}
    try:
        of.decode(json.dumps(payload).encode())
    except BadPayload:
        taken = False
    else:
        taken = True
    return compile_schema(of.schema).is_valid(payload), taken


CODECS = {word: codec(uuid.UUID if word == "uuid" else wanted) for word, wanted in TYPES.items()}
TEXTS = st.one_of(
    st.text(max_size=12),
    st.from_regex(r"[0-9]{3,5}-[0-9]{1,2}-[0-9]{1,2}", fullmatch=True),
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?"
        r"([Zz]|[+-][0-2][0-9]:?[0-6][0-9])?",
        fullmatch=True,
    ),
    st.from_regex(r"[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,7})?)?(Z|[+-][0-2][0-9]:[0-6][0-9])?", fullmatch=True),
    st.from_regex(r"-?P([0-9]{1,12}[YMWD])?(T([0-9]{1,5}[HMS])?([0-9]{1,4}(\.[0-9]{1,7})?S)?)?", fullmatch=True),
    st.from_regex(r"[ +-]?[0-9_]{0,5}\.?[0-9]{0,5}([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9+/_-]{0,8}={0,3}", fullmatch=True),
    st.uuids().map(str),
    st.from_regex(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\n?", fullmatch=True),
    st.uuids().map(lambda each: each.hex.upper()),
    st.dates().map(str),
    st.datetimes().map(lambda each: each.isoformat()),
    st.times().map(str),
    st.decimals().map(str),
)


@pytest.mark.parametrize("word", TYPES)
@given(value=st.one_of(TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.none()))
@example(value="yesterday")
@example(value="2026-W49-2")
@example(value="2026-12-01T24:00:00Z")
@example(value="2026-12-01T08:00:00")
@example(value="2026-12-01T23:59:60Z")
@example(value=1.5)
def test_the_schema_of_a_payload_takes_what_its_handler_takes(word: str, value: Any) -> None:
    told, taken = both(CODECS[word], value)
    assert told == taken


def test_each_example_that_a_refusal_names_is_taken() -> None:
    for word, wanted in TYPES.items():
        text = EXAMPLES[word].split(" like ", 1)[1].replace(",", " ").split()[0]
        msgspec.convert(text, wanted)


class Box(msgspec.Struct):
    day: datetime.date
    inner: "Box | None" = None


class Tagged(msgspec.Struct, tag=True):
    at: datetime.datetime


class Other(msgspec.Struct, tag=True):
    id: uuid.UUID


class Listed(msgspec.Struct, array_like=True):
    day: datetime.date


@dataclass
class Data:
    day: datetime.date


class Pair(NamedTuple):
    day: datetime.date
    count: int = 0


class Typed(TypedDict):
    day: datetime.date


DAY, BAD = "2026-12-01", "yesterday"


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (datetime.date | None, DAY, BAD),
        (list[datetime.date], [DAY], [DAY, BAD]),
        (set[datetime.date] | None, [DAY], [BAD]),
        (tuple[int, datetime.date], [1, DAY], [1, BAD]),
        (tuple[datetime.date, ...], [DAY], [BAD]),
        (dict[str, datetime.date], {"a": DAY}, {"a": BAD}),
        (dict[datetime.date, int], {DAY: 1}, {BAD: 1}),
        (dict[str, datetime.date] | list[uuid.UUID], {"a": DAY}, [BAD]),
        (Box, {"day": DAY, "inner": {"day": DAY}}, {"day": DAY, "inner": {"day": BAD}}),
        (list[Box] | None, [{"day": DAY}], [{"day": BAD}]),
        (Tagged | Other, {"type": "Tagged", "at": f"{DAY}T08:00:00"}, {"type": "Other", "id": BAD}),
        (Listed, [DAY], [BAD]),
        (Data, {"day": DAY}, {"day": BAD}),
        (Pair, [DAY, 1], [BAD]),
        (Typed, {"day": DAY}, {"day": BAD}),
        (decimal.Decimal | None, 1.5, BAD),
        (Annotated[datetime.date, msgspec.Meta(description="when")], DAY, BAD),
    ],
)
def test_wherever_the_text_is(wanted: Any, good: Any, bad: Any) -> None:
    assert (both(codec(wanted), good), both(codec(wanted), bad)) == ((True, True), (False, False))


def test_a_text_that_only_says_a_format_is_not_checked() -> None:
    said = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date"})]
    assert both(codec(said), BAD) == (True, True)
    assert compile_schema({"type": "string", "format": "date"}).is_valid(BAD)


def test_what_pydantic_reads_in_its_own_way_is_not_checked() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", at=(datetime.datetime, ...))
    assert both(codec(model), {"at": "2026-12-01"}) == (True, True)


def test_a_word_that_is_not_known_here_checks_nothing() -> None:
    assert compile_schema({KEYWORD: "moon phase"}).is_valid(BAD)
    assert compile_schema({KEYWORD: 1}).is_valid(BAD)
