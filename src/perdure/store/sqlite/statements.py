"""The SQL, read from the files beside this one. One file is one statement, named as its file."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from perdure.store.relational.both_ways import with_both_ways

_ROW = re.compile(r"VALUES (\([?, ]+\))")


def load() -> dict[str, str]:
    """Every statement by name."""
    folder = files("perdure.store.sqlite") / "sql"
    read = (
        (entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    )
    return dict(with_both_ways(read))


STATEMENTS: Mapping[str, str] = load()


@cache
def for_rows(name: str, rows: int) -> str:
    """The named statement with its row of VALUES repeated."""
    return _ROW.sub(lambda found: "VALUES " + ", ".join([found[1]] * rows), STATEMENTS[name])
