"""Documents within a value that are values of the domain: a retry, a limit, what makes a task unique.

A decoder passes over what such a document says that its type does not know, and what breaks a rule in it is told
without the place. So a value that has any is looked at once more: unknown fields are refused, and both are told with
their path.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import inspect

from perdure import mistakes
from perdure.errors import Invalid, Refused

T = TypeVar("T")

_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType, inspect.CollectionType)


class Shape(NamedTuple):
    """Where documents lie within a value: the value itself, the fields of an object, each item or value of it."""

    document: type | None = None
    known: frozenset[str] = frozenset()
    """The fields of the document."""
    fields: Mapping[str, "Shape"] = {}
    each: "Shape | None" = None


class Fault(NamedTuple):
    """What is wrong with a document, and the path of the part that is meant (`tasks[0].unique.by`)."""

    message: str
    path: str


class _Document(NamedTuple):
    place: str
    shape: Shape
    value: Mapping[str, Any]


def convert(value: Any, wanted: type[T], whole: str) -> T:
    """`value` as a `wanted`; `whole` names the value itself. Raises `Invalid` with the field."""
    shape = shape_of(cast(Any, wanted))
    unknown = unknown_in(shape, value)
    if unknown is not None:
        raise Invalid(f"{unknown.path}: {unknown.message}", field=unknown.path)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as fault:
        raise mistakes.refusal(fault, wanted, whole) from None
    except Refused as refusal:
        raise broken_in(shape, value) or refusal from None


def fault_in(value: Any, wanted: type) -> Fault | None:
    """What is wrong with a document within a value that is to be a `wanted`."""
    shape = shape_of(wanted)
    unknown = unknown_in(shape, value)
    if unknown is not None:
        return unknown
    broken = broken_in(shape, value)
    return None if broken is None else Fault(broken.message, str(broken.fields["field"]))


@cache
def shape_of(wanted: Any) -> Shape:
    """Where documents lie within a type; an empty shape where there are none."""
    return _shape(inspect.type_info(wanted))


def _shape(told: inspect.Type) -> Shape:
    while isinstance(told, inspect.Metadata):
        told = told.type
    if isinstance(told, inspect.UnionType):
        return _joined([_shape(each) for each in told.types])
    if isinstance(told, inspect.StructType | inspect.DataclassType):
        fields = {field.encode_name: _shape(field.type) for field in told.fields}
        within = {name: shape for name, shape in fields.items() if shape != Shape()}
        if isinstance(told, inspect.DataclassType):
            return Shape(told.cls, frozenset(fields), within)
        return Shape(fields=within)
    if isinstance(told, _LISTS):
        return _each(_shape(told.item_type))
    return _each(_shape(told.value_type)) if isinstance(told, inspect.DictType) else Shape()


def _each(shape: Shape) -> Shape:
    return Shape(each=shape) if shape != Shape() else shape


def _joined(shapes: list[Shape]) -> Shape:
    """What a value of one of several types may have: at most one of them is an object, and one a list."""
    joined = Shape()
    for shape in shapes:
        joined = Shape(
            shape.document or joined.document,
            shape.known | joined.known,
            {**joined.fields, **shape.fields},
            shape.each or joined.each,
        )
    return joined


def _documents(shape: Shape, value: Any, place: str) -> Iterator[_Document]:
    if isinstance(value, dict):
        if shape.document is not None:
            yield _Document(place, shape, value)
        for name, inner in value.items():
            below = shape.fields.get(name, shape.each)
            if below is not None:
                yield from _documents(below, inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and shape.each is not None:
        for number, inner in enumerate(value):
            yield from _documents(shape.each, inner, f"{place}[{number}]")


def unknown_in(shape: Shape, value: Any) -> Fault | None:
    """The first field that a document has and its type does not know."""
    for document in _documents(shape, value, ""):
        for name in document.value:
            if name not in document.shape.known:
                path = f"{document.place}.{name}" if document.place else str(name)
                return Fault(mistakes.unknown_field(str(name), document.shape.known), path)
    return None


def broken_in(shape: Shape, value: Any) -> Refused | None:
    """The first rule that a document breaks, told with its path."""
    for document in _documents(shape, value, ""):
        broken = _broken(document)
        if broken is not None:
            return broken
    return None


def _broken(document: _Document) -> Refused | None:
    assert document.shape.document is not None
    try:
        msgspec.convert(document.value, document.shape.document)
    except Refused as fault:
        said = fault.fields.get("field")
        below = [str(said)] if said in document.shape.known else []
        field = ".".join([document.place, *below] if document.place else below)
        return type(fault)(fault.message, **{**fault.fields, "field": field})
    except msgspec.ValidationError:
        # Told by the decoder, in the order of the value.
        return None
    return None
