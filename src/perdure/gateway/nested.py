"""Documents within a body, looked at where the body has any: most have none, and are only searched for their names."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from perdure.documents import Shape, broken_in, shape_of, unknown_in
from perdure.errors import Invalid, Refused
from perdure.gateway import problems

_ESCAPE = b"\\u"
"""What may hide the name of a field."""

_any_json = msgspec.json.Decoder().decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Unknown(Invalid):
    """A document has a field that its type does not know."""


class Nested:
    """The documents within one type of body."""

    def __init__(self, body: Any) -> None:
        self._shape = shape_of(body)
        self._names = tuple(b'"%s"' % name.encode() for name in sorted(_names(self._shape)))
        self._item_type = _item_of(inspect.type_info(body))
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


def _unknown(shape: Shape, value: Any) -> _Unknown | None:
    fault = unknown_in(shape, value)
    return None if fault is None else _Unknown(f"{fault.path}: {fault.message}", field=fault.path)


def _told(shape: Shape, data: bytes | msgspec.Raw, refusal: Refused) -> Refused:
    """What a document was refused for while a body was decoded, with its path."""
    value = _any_json(data)
    unknown = _unknown(shape, value)
    if unknown is not None:
        return unknown
    return broken_in(shape, value) or refusal


def _placed(refusal: Refused, number: int) -> Refused:
    field = f"[{number}].{refusal.fields.get('field', 'body')}"
    return type(refusal)(refusal.message, **{**refusal.fields, "field": field})
