"""Names of fields of a payload, as limits, turns and unique keys are by them."""

from perdure.domain.limits import FIELD_NAME_MAX_BYTES
from perdure.errors import Invalid


def payload_fields(by: object, most: int) -> tuple[str, ...]:
    """The names in `by`, a text or several, `most` at most. Raises `Invalid` with the field `by`.

    They are part of keys in the store, so they are short, and can be shown.
    """
    fields = (by,) if isinstance(by, str) else by
    if not isinstance(fields, tuple | list) or not all(_is_name(each) for each in fields):
        raise Invalid(
            "by must be the name of a payload's field, or several names, each "
            f"1 to {FIELD_NAME_MAX_BYTES} bytes of printable text",
            field="by",
        )
    if len(fields) > most or len({*fields}) < len(fields):
        raise Invalid(f"by may name {most} fields at most, each once", field="by")
    return tuple(fields)


def _is_name(text: object) -> bool:
    # What cannot be encoded, half a surrogate pair, is not printable.
    return isinstance(text, str) and text.isprintable() and 1 <= len(text.encode()) <= FIELD_NAME_MAX_BYTES
