"""The SQL, read from the files beside this one. One file is one statement, named as its file."""

from collections.abc import Mapping
from importlib.resources import files


def load() -> dict[str, str]:
    """Every statement by name."""
    folder = files("perdure.store.sqlite") / "sql"
    return {
        entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


STATEMENTS: Mapping[str, str] = load()
