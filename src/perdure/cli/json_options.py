"""What options and arguments say in JSON: read in one place, and refused with an example of what they take."""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from perdure.errors import Malformed

if TYPE_CHECKING:
    from perdure.domain.retry import Retry
    from perdure.domain.unique import Unique

T = TypeVar("T")

SHOWN_CHARS = 40
"""So much is shown of what is no object."""


class JsonText(NamedTuple):
    """An option or argument that takes JSON, and an example of it for help and refusals."""

    name: str
    field: str
    example: str

    @property
    def shown(self) -> str:
        """As it may be typed."""
        return f"{self.name} '{self.example}'" if self.name.startswith("--") else f"'{self.example}'"


RETRY = JsonText("--retry", "retry", '{"max_attempts": 5, "backoff": "fixed", "base": 10}')
UNIQUE = JsonText("--unique", "unique", '{"by": "customer", "on_conflict": "replace"}')
METADATA = JsonText("--metadata", "metadata", '{"ticket": 42}')
EDITED_PAYLOAD = JsonText("--payload", "payload", '{"to": "a@b.org"}')
PAYLOAD = JsonText("the payload", "payload", '{"to": "a@b.org"}')


def value_of(text: str, option: JsonText) -> Any:
    """Any JSON value. Raises `Malformed`."""
    from perdure.jobfile.json_text import parse_json

    try:
        return parse_json(option.name, text).value
    except Malformed as error:
        place = {name: error.fields[name] for name in ("line", "column") if error.fields.get(name) is not None}
        raise Malformed(f"{error.message}: write JSON, as {option.shown}", field=option.field, **place) from None


def metadata_of(text: str | None) -> Any:
    """What `--metadata` says."""
    return None if text is None else value_of(text, METADATA)


def retry_of(text: str | None) -> "Retry | None":
    """What `--retry` says."""
    from perdure.domain.retry import Retry

    return None if text is None else _document(text, RETRY, Retry)


def unique_of(text: str | None) -> "Unique | None":
    """What `--unique` says."""
    from perdure.domain.unique import Unique

    return None if text is None else _document(text, UNIQUE, Unique)


def _document(text: str, option: JsonText, wanted: type[T]) -> T:
    """An object with the fields of `wanted`. Raises `Malformed`, and `Invalid` with what is wrong in it."""
    from perdure.documents import convert
    from perdure.errors import Invalid

    value = value_of(text, option)
    if not isinstance(value, dict):
        raise Invalid(
            f"{option.name} {text[:SHOWN_CHARS]!r} is no JSON object: write it as {option.shown}", field=option.field
        )
    try:
        return convert(value, wanted, option.field)
    except Invalid as error:
        raise Invalid(f"{option.name}: {error.message}; an example: {option.shown}", field=option.field) from None
