"""Looking at tasks that are to be changed, where others may move them at the same time."""

from collections.abc import Sequence
from typing import Any

from perdure.errors import InvariantBroken
from perdure.store.relational.transaction import Transaction, batch

LOOKS_MAX = 100
"""How often a task may move while it is looked at before that is taken for a broken store."""


def look(tx: Transaction, name: str, tasks: Sequence[tuple[str, str]]) -> list[list[Any]]:
    """How tasks (organization, id) stand, as the named statement tells: rows of number, state and more, in order.

    Such a statement locks what it finds. A task that moved between unfinished and ended while its row was waited for is
    seen in neither place, with a number and no state: then all are looked at again.
    """
    document = batch(tasks)
    for _ in range(LOOKS_MAX):
        rows: list[list[Any]] = tx.document(name, batch=document)
        if all(number is None or state is not None for number, state, *_ in rows):
            return rows
    raise InvariantBroken(f"{name} found tasks that are neither unfinished nor ended", statement=name)
