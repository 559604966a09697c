"""The tree in errors.py is the tree of its classes, and each error has its place in HTTP and in the CLI."""

import re
from http import HTTPStatus
from typing import NamedTuple

from perdure import errors
from perdure.errors import PerdureError


class Drawn(NamedTuple):
    name: str
    parent: str
    status: int | None


def test_the_drawn_tree_is_the_tree_of_the_classes():
    drawn = {node.name: node.parent for node in _drawn()}
    real = {cls.__name__: cls.__base__.__name__ for cls in _classes() if cls is not PerdureError}
    assert drawn == real


def test_the_drawn_numbers_are_the_numbers_of_the_classes():
    for node in _drawn():
        if node.status is not None:
            assert getattr(errors, node.name).status == node.status, node.name


def test_every_error_has_a_status_an_exit_code_and_a_code_of_its_own():
    codes = [cls.code for cls in _classes()]
    assert len(set(codes)) == len(codes), "two errors share a code"
    for cls in _classes():
        assert HTTPStatus(cls.status) >= 400, cls.__name__
        assert cls.exit_code in (1, 2, 3), cls.__name__
        assert re.fullmatch("[a-z_]+", cls.code), cls.__name__
        assert cls.__doc__, cls.__name__


def _classes() -> list[type[PerdureError]]:
    return [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, PerdureError)]


def _drawn() -> list[Drawn]:
    above = ["PerdureError"]
    nodes = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^([ │├└─]*)[├└]── (\w+)\s*(\d{3})?", line)
        if match:
            depth = len(match.group(1)) // 4 - 1
            nodes.append(Drawn(match.group(2), above[depth], int(match.group(3)) if match.group(3) else None))
            above[depth + 1 :] = [match.group(2)]
    return nodes
