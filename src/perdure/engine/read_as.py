"""Texts in a payload that a handler reads as a date, an instant, an id: checked as the worker's decoder will read them.

`format` in a JSON Schema is a hint, and each who writes one means another grammar by it: Pydantic's `date-time` has
forms that RFC 3339 does not. So a worker writes beside it which of the decoder's types reads the text, and only that
is checked.
"""

import datetime
import decimal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

KEYWORD = "x-perdure-read-as"

_ZONED = msgspec.Meta(tz=True)
_LOCAL = msgspec.Meta(tz=False)

# As the decoder reads one: with all its hyphens, or with none.
_HEX = "[0-9a-fA-F]"
_UUID = msgspec.Meta(pattern=rf"^(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}|{_HEX}{{32}})\Z")

TYPES: Mapping[str, Any] = MappingProxyType(
    {
        "base64": bytes,
        "date": datetime.date,
        "datetime": datetime.datetime,
        "datetime with a zone": Annotated[datetime.datetime, _ZONED],
        "datetime without a zone": Annotated[datetime.datetime, _LOCAL],
        "decimal": decimal.Decimal,
        "duration": datetime.timedelta,
        "time": datetime.time,
        "time with a zone": Annotated[datetime.time, _ZONED],
        "time without a zone": Annotated[datetime.time, _LOCAL],
        "uuid": Annotated[str, _UUID],
    }
)
"""What reads a text, by the word for it in a schema. A word that is not here, a later version's, checks nothing."""

EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "base64": "base64, like AAEC",
        "date": "a date like 2026-12-01",
        "datetime": "an instant like 2026-12-01T08:00:00Z, or without the zone",
        "datetime with a zone": "an instant like 2026-12-01T08:00:00Z",
        "datetime without a zone": "an instant without a zone, like 2026-12-01T08:00:00",
        "decimal": "a decimal number like 12.50",
        "duration": "a duration like PT1H30M or P2D",
        "time": "a time of day like 08:00:00",
        "time with a zone": "a time of day like 08:00:00Z",
        "time without a zone": "a time of day without a zone, like 08:00:00",
        "uuid": "a UUID like 0190a5d4-7b1c-7e52-b3f1-9c2d6c1f8a10",
    }
)


class ReadAs:
    """The check of the keyword, as the validator wants it."""

    def __init__(self, parent: Mapping[str, Any], word: Any, path: list[str | int]) -> None:
        self._word = word if isinstance(word, str) else ""

    def validate(self, value: Any) -> None:
        """Raise `ValueError` for a text that the decoder would refuse. What is no text is none of its business."""
        if not isinstance(value, str) or self._word not in TYPES:
            return
        try:
            msgspec.convert(value, TYPES[self._word])
        except msgspec.ValidationError:
            shown = value if len(value) <= 80 else f"{value[:77]}..."
            raise ValueError(f"{shown!r} is not {EXAMPLES[self._word]}") from None
