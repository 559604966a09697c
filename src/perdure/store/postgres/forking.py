"""Forks of the process: a child lets go of the inherited connections without a word to the server.

A child that used or closed them would speak into its parent's sessions, and one that only forgot them would keep them
open after its parent's death, with whatever locks they held.
"""

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any

import psycopg


class Inheritance:
    """All connections of one store in this process."""

    def __init__(self) -> None:
        self._connections: list[psycopg.Connection[Any]] = []
        self._in_child: list[Callable[[], None]] = []
        _INHERITANCES.add(self)

    def admit(self, connection: psycopg.Connection[Any]) -> None:
        """Let go of this connection in children."""
        self._connections.append(connection)

    def dismiss(self, connection: psycopg.Connection[Any]) -> None:
        """The connection is closed."""
        with contextlib.suppress(ValueError):
            self._connections.remove(connection)

    def in_child(self, action: Callable[[], None]) -> None:
        """Do this in children, once the inherited connections are gone."""
        self._in_child.append(action)

    def let_go(self) -> None:
        """In a child: close what was inherited, with nothing behind it that could be told."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for connection in self._connections:
            with contextlib.suppress(psycopg.Error, OSError):
                os.dup2(nowhere, connection.fileno(), inheritable=False)
                connection.close()
        os.close(nowhere)
        self._connections.clear()
        for action in self._in_child:
            action()


_INHERITANCES: weakref.WeakSet[Inheritance] = weakref.WeakSet()
"""Those of all stores of this process. The hook is one for all: hooks cannot be removed."""


def _let_go_of_all() -> None:
    for inheritance in list(_INHERITANCES):
        inheritance.let_go()


os.register_at_fork(after_in_child=_let_go_of_all)
