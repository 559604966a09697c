"""Which texts may be names: of kinds, queues, tasks, capabilities, labels."""

import re

from perdure.domain import limits
from perdure.engine.quantities import shown
from perdure.errors import Invalid, Malformed

CHECKED_MAX = 10_000
"""How many names of one sort are remembered as good."""

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")


class WordCheck:
    """Checks names that machines use: ASCII letters, digits and `_ . : / -`, beginning with a letter, digit or `_`.

    Good ones are remembered, so that the thousandth task of a kind costs a look-up.
    """

    def __init__(self, field: str, max_chars: int) -> None:
        self._field = field
        self._max_chars = max_chars
        self._good: set[str] = set()

    def __call__(self, text: object, field: str | None = None) -> str:
        """`text` itself. Raises `Invalid`."""
        if isinstance(text, str):
            if text in self._good:
                return text
            if len(text) <= self._max_chars and _WORD.fullmatch(text):
                if len(self._good) >= CHECKED_MAX:
                    self._good.clear()
                self._good.add(text)
                return text
        name = field or self._field
        raise Invalid(
            f"{name} must be 1 to {self._max_chars} ASCII letters, digits, '_', '.', ':', '/' or '-' and begin with a "
            f"letter, a digit or '_', not {shown(text)}",
            field=name,
        )


def check_title(text: object, field: str, max_chars: int = limits.NAME_MAX_CHARS) -> str:
    """`text` itself, if people can read it: 1 to `max_chars` printable characters, no space at either end."""
    if isinstance(text, str) and 0 < len(text) <= max_chars and text.isprintable() and text == text.strip():
        return text
    raise Invalid(
        f"{field} must be 1 to {max_chars} printable characters without space at either end, not {shown(text)}",
        field=field,
    )


def label_pair(text: str, field: str) -> tuple[str, str]:
    """A label as it is written on a command line and in an address: `NAME=VALUE`. Raises `Malformed`."""
    name, found, value = text.partition("=")
    if name and found:
        return name, value
    name, found, value = text.partition(":")
    instead = f": write {name}={value}" if name and found else ", as in customer=42"
    raise Malformed(f"{field} {shown(text)} is not NAME=VALUE{instead}", field=field)


def check_key(text: object, field: str = "idempotency_key") -> str:
    """`text` itself, if it may be an idempotency key: 1 to 255 bytes of UTF-8, printable."""
    try:
        fits = (
            isinstance(text, str) and text.isprintable() and 1 <= len(text.encode()) <= limits.IDEMPOTENCY_KEY_MAX_BYTES
        )
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise Invalid(
            f"{field} must be 1 to {limits.IDEMPOTENCY_KEY_MAX_BYTES} bytes of printable text, not {shown(text)}",
            field=field,
        )
    return str(text)


def check_prose(text: object, field: str, max_chars: int) -> str:
    """`text` itself, if it may be a reason or a note: at most `max_chars` characters, each of which UTF-8 has."""
    fits = isinstance(text, str) and len(text) <= max_chars and "\x00" not in text
    if fits:
        try:
            str(text).encode()
        except UnicodeEncodeError:
            fits = False
    if not fits:
        raise Invalid(f"{field} must be text of at most {max_chars} characters without NUL", field=field)
    return str(text)
