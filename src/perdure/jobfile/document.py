"""A file's plain values together with the place of each of them, so that an error can point at its line.

Paths are tuples of keys and indexes: `("tasks", 3, "priority")`. Places are 1-based.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from perdure.errors import Invalid, Malformed

DOCUMENT_MAX_BYTES = 64 * 1024 * 1024
"""A job file is read whole; a larger one is refused unread."""

Path = tuple[str | int, ...]

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")


class Place(NamedTuple):
    """Where something stands in its file: line and column, from 1."""

    line: int
    column: int


class Document:
    """The value of a file. `places` finds where its parts stand; it is called only when there is an error to place."""

    def __init__(self, name: str, value: Any, places: Callable[[], Mapping[Path, Place]]) -> None:
        self.name = name
        self.value = value
        self._places = places

    def all_places(self) -> Mapping[Path, Place]:
        """The place of every value."""
        return self._places()

    def place(self, path: Path) -> Place | None:
        """The place of the longest part of `path` that the file has; `None` where no place can be told."""
        places = self._places()
        for length in range(len(path), -1, -1):
            place = places.get(path[:length])
            if place is not None:
                return place
        return None

    def refuse(self, path: Path, fact: str, **fields: Any) -> NoReturn:
        """Raise `Invalid` about one part of the file: one line with the file, the place, the path and the fact."""
        place = self.place(path)
        where = written(path)
        raise Invalid(
            f"{located(self.name, place)}: {where + ': ' if where else ''}{fact}",
            file=self.name,
            line=place.line if place else None,
            column=place.column if place else None,
            field=where or None,
            **fields,
        )


def malformed(name: str, place: Place | None, fact: str) -> Malformed:
    """The error for a file that cannot be parsed."""
    return Malformed(
        f"{located(name, place)}: {fact}",
        file=name,
        line=place.line if place else None,
        column=place.column if place else None,
    )


def located(name: str, place: Place | None) -> str:
    """`name:line:column`, as editors and terminals understand it."""
    return f"{name}:{place.line}:{place.column}" if place else name


def written(path: Path) -> str:
    """A path as people write it: `tasks[3].priority`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def steps_of(text: str) -> Path:
    """The path that was written so, as far as it is definite: `[...]` is any item."""
    steps: list[str | int] = []
    for step in _STEP.finditer(text):
        if step[1] is None and step[2] is None:
            break
        steps.append(step[1] if step[2] is None else int(step[2]))
    return tuple(steps)


def place_of_offset(text: str, offset: int) -> Place:
    """The place of a character by its offset from the beginning."""
    before = text[:offset]
    return Place(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
