"""Ids from outside: checked before anything is asked of a store."""

import re
from collections.abc import Iterable

from perdure.errors import Malformed

EXAMPLE = "0198c5a4-7f3e-7abc-8def-0123456789ab"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_SHORTENED = re.compile(r"(?![0-9a-f]{32}$)(?=.{4,35}$)[0-9a-f]+(-[0-9a-f]*)*")


def parse(text: object, what: str = "task", field: str | None = None) -> str:
    """The id in its one form, lower case with dashes. Raises `Malformed` for anything that is not a UUID.

    `field` is where it was said; `task_id` for a task if that is not told.
    """
    if isinstance(text, str):
        folded = text.lower()
        if _UUID.fullmatch(folded):
            return folded
    shown = repr(text)[:60]
    if isinstance(text, str) and _SHORTENED.fullmatch(text.lower()):
        raise Malformed(
            f"{shown} is only a part of the id of {_article(what)} {what}: give all {len(EXAMPLE)} characters, as a"
            f" list or the submit told them, such as {EXAMPLE}",
            field=field or f"{what}_id",
            id=text,
        )
    raise Malformed(
        f"{shown} is not the id of {_article(what)} {what}: ids look like {EXAMPLE}",
        field=field or f"{what}_id",
        id=str(text)[:60],
    )


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def parse_all(texts: Iterable[object], what: str = "task", field: str = "ids") -> list[str]:
    """Several ids, each as `parse` does. Raises `Malformed` with the place of the first that is none."""
    return [parse(text, what, f"{field}[{number}]") for number, text in enumerate(texts)]
