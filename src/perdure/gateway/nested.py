"""Documents within a body that are values of the domain: a retry, a limit, what makes a task unique.

The decoder passes over what such a document says that its type does not know, and what breaks a rule in it is told
without the place. So a body that has any is looked at once more: unknown fields are refused, and both are told with
their path.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from perdure import mistakes
from perdure.errors import Invalid, Refused
from perdure.gateway import problems

_ESCAPE = b"\\u"
"""What may hide the name of a field."""
_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType, inspect.CollectionType)

_any_json = msgspec.json.Decoder().decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Shape(NamedTuple):
    """Where documents lie within a value: the value itself, the fields of an object, each item or value of it."""

    document: type | None = None
    known: frozenset[str] = frozenset()
    """The fields of the document."""
    fields: Mapping[str, "Shape"] = {}
    each: "Shape | None" = None


class _Unknown(Invalid):
    """A document has a field that its type does not know."""


class _Document(NamedTuple):
    place: str
    shape: Shape
    value: Mapping[str, Any]


class Nested:
    """The documents within one type of body."""

    def __init__(self, body: Any) -> None:
        told = inspect.type_info(body)
        self._shape = shape_of(told)
        self._names = tuple(b'"%s"' % name.encode() for name in sorted(_names(self._shape)))
        self._item_type = _item_of(told)
        self._decode_item = None if self._item_type is None else msgspec.json.Decoder(self._item_type).decode

    def check(self, data: bytes) -> None:
        """Raise `Invalid` for a field that a document has and its type does not know. The body is decoded already."""
        if self._names and (any(name in data for name in self._names) or _ESCAPE in data):
            unknown = _unknown(self._shape, _any_json(data))
            if unknown is not None:
                raise unknown

    def items(self, data: bytes, refusal: Refused) -> list[Any]:
        """The items of a list of which some break a rule in a document: their refusals stand in their places.

        Raises what is refused, with the path, where the body is no list, and for items that cannot be read.
        """
        decode = self._decode_item
        if decode is None or not data.lstrip().startswith(b"["):
            raise _told(self._shape, data, refusal)
        items = list[Any]()
        for number, item in enumerate(_raw_items(data)):
            try:
                items.append(self._item(bytes(item), decode))
            except msgspec.ValidationError as fault:
                raise _placed(problems.malformed_json(fault, self._item_type), number) from None
            except _Unknown as unknown:
                raise _placed(unknown, number) from None
        return items

    def _item(self, item: bytes, decode: Callable[[bytes], Any]) -> Any:
        """An item, or the rule that it breaks. Raises what is wrong with the rest of it."""
        try:
            return decode(item)
        except Refused as fault:
            told = _told(self._shape.each or Shape(), item, fault)
            if isinstance(told, _Unknown):
                raise told from None
            rest = _any_json(item)
            if rest.pop(str(told.fields.get("field")).partition(".")[0], None) is not None:
                self._item(msgspec.json.encode(rest), decode)
            return told


def shape_of(told: inspect.Type) -> Shape:
    """Where documents lie within a type; an empty shape where there are none."""
    while isinstance(told, inspect.Metadata):
        told = told.type
    if isinstance(told, inspect.UnionType):
        return _joined([shape_of(each) for each in told.types])
    if isinstance(told, inspect.StructType | inspect.DataclassType):
        fields = {field.encode_name: shape_of(field.type) for field in told.fields}
        within = {name: shape for name, shape in fields.items() if shape != Shape()}
        if isinstance(told, inspect.DataclassType):
            return Shape(told.cls, frozenset(fields), within)
        return Shape(fields=within)
    if isinstance(told, _LISTS):
        return _each(shape_of(told.item_type))
    return _each(shape_of(told.value_type)) if isinstance(told, inspect.DictType) else Shape()


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


def _names(shape: Shape) -> set[str]:
    """The names of fields that are documents, or lists of them."""
    below = {name: _names(each) for name, each in shape.fields.items()}
    own = {name for name, each in below.items() if not each}
    return own.union(*below.values(), set() if shape.each is None else _names(shape.each))


def _item_of(told: inspect.Type) -> Any:
    """The type of the items, where a body may be a list."""
    if isinstance(told, inspect.Metadata):
        return _item_of(told.type)
    if isinstance(told, inspect.UnionType):
        return next((found for each in told.types if (found := _item_of(each)) is not None), None)
    if isinstance(told, inspect.ListType) and isinstance(told.item_type, inspect.StructType):
        return told.item_type.cls
    return None


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


def _unknown(shape: Shape, value: Any) -> _Unknown | None:
    for document in _documents(shape, value, ""):
        for name in document.value:
            if name not in document.shape.known:
                field = f"{document.place}.{name}"
                return _Unknown(f"{field}: {mistakes.unknown_field(name, document.shape.known)}", field=field)
    return None


def _told(shape: Shape, data: bytes | msgspec.Raw, refusal: Refused) -> Refused:
    """What a document was refused for while a body was decoded, with its path."""
    value = _any_json(data)
    unknown = _unknown(shape, value)
    if unknown is not None:
        return unknown
    for document in _documents(shape, value, ""):
        broken = _broken(document)
        if broken is not None:
            return broken
    return refusal


def _broken(document: _Document) -> Refused | None:
    """The rule that a document breaks."""
    assert document.shape.document is not None
    try:
        msgspec.convert(document.value, document.shape.document)
    except Refused as fault:
        said = fault.fields.get("field")
        field = f"{document.place}.{said}" if said in document.shape.known else document.place
        return type(fault)(fault.message, **{**fault.fields, "field": field})
    except msgspec.ValidationError:
        # Told by the decoder, in the order of the body.
        return None
    return None


def _placed(refusal: Refused, number: int) -> Refused:
    field = f"[{number}].{refusal.fields.get('field', 'body')}"
    return type(refusal)(refusal.message, **{**refusal.fields, "field": field})
