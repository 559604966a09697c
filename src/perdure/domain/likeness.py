"""Which of the known names is meant where one is not known."""

import difflib
from collections.abc import Callable, Iterable

GIVEN_MAX_CHARS = 100
"""Nothing is near to what is longer, and comparing costs time for each character."""


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known name that is likest to the given one, if any is like it at all."""
    if len(given) > GIVEN_MAX_CHARS:
        return None
    return next(iter(difflib.get_close_matches(given, known, 1)), None)


def did_you_mean(given: str, known: Iterable[str], shown: Callable[[str], str] = repr) -> str:
    """The end of a sentence about a name that is not known; empty where none that is known is like it."""
    near = nearest(given, known)
    return f"; did you mean {shown(near)}?" if near is not None else ""
