"""What a handler says that it returns: what can never be kept is refused before it runs."""

import collections
import enum
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from perdure.app import App
from perdure.errors import Misuse
from perdure.worker.handler import Handler
from perdure.worker.verdicts import Verdict


@dataclass
class Filed:
    at: list[pathlib.Path]
    before: "Filed | None" = None


@dataclass
class Tree:
    branches: "list[Tree]"


class Own:
    """May be the base of a dataclass."""


def returning(wanted: Any) -> Handler:
    async def returns() -> None: ...

    returns.__annotations__["return"] = wanted
    return Handler("a.kind", returns)


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (pathlib.Path, "Path"),
        (pathlib.Path | None, "Path"),
        (Filed | Verdict, "Path"),
        (dict[str, collections.deque[int]], "deque"),
        (tuple[int, complex], "complex"),
    ],
    ids=str,
)
def test_what_can_never_be_kept_is_refused_with_its_name(wanted: Any, named: str) -> None:
    with pytest.raises(
        Misuse, match=f"the handler of 'a.kind' returns a {named}, which cannot be kept as JSON: return"
    ):
        returning(wanted)


OWN = (Own, list[Own], Tree, object, Exception)
KNOWN = (
    collections.Counter,
    Iterator[int],
    Decimal,
    datetime,
    set[UUID],
    int | list | set,
    enum.Enum,
    bytes,
    Any,
    None,
)


@pytest.mark.parametrize("wanted", OWN + KNOWN, ids=str)
def test_types_of_which_something_can_be_kept_are_let_through(wanted: Any) -> None:
    assert returning(wanted).kind == "a.kind"


def test_the_decorator_refuses_it() -> None:
    app = App("memory.db")
    with pytest.raises(Misuse, match=r"returns a Path.*such as its text"):

        @app.task("report")
        async def report() -> pathlib.Path:
            return pathlib.Path("report.csv")
