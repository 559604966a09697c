"""The SQL, read from the files beside this one. One file is one statement, named as its file.

A statement that stages rows for later ones says so below its purpose: `-- stages: ending`; its one value is the JSON
array of those rows as objects. `-- clears: ending` forgets what is staged and has no text.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple

from perdure.errors import invariant
from perdure.store.relational.both_ways import with_both_ways

STAGES = ("settling", "ending", "ended", "touched", "joining")
"""The names under which rows are staged."""

_HEADER = re.compile(r"^-- (stages|clears): (\w+)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


class Statement(NamedTuple):
    """One statement: its text, and what it has to do with staged rows."""

    name: str
    text: bytes
    """With `%(name)s` for what is bound."""
    numbered: bytes
    """With `$1`, `$2` and so on for the values of `names`, as the server takes it."""
    names: tuple[str, ...]
    stages: str | None
    """Its rows are staged under this name."""
    clears: str | None
    """It forgets what is staged under this name, and asks the server nothing."""
    reads: tuple[str, ...]
    """The staged rows that it is given."""


def parse(name: str, text: str) -> Statement:
    """The statement in a file of this name."""
    headers = dict(_HEADER.findall(text))
    used = {*_PLACEHOLDER.findall(text)}
    for stage in headers.values():
        invariant(stage in STAGES, f"{name}.sql stages under a known name")
    names = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
    numbered = _PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", text).replace("%%", "%")
    return Statement(
        name,
        text.encode(),
        numbered.encode(),
        names,
        headers.get("stages"),
        headers.get("clears"),
        tuple(stage for stage in STAGES if stage in used),
    )


def load(place: str = "sql") -> dict[str, Statement]:
    """Every statement of a folder beside this file, by name."""
    folder = files("perdure.store.postgres") / place
    read = (
        (entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    )
    return {name: parse(name, text) for name, text in with_both_ways(read)}


STATEMENTS: Mapping[str, Statement] = load()
