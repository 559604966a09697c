"""A cursor that nobody was given: refused by every store, whatever stands in it."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from conformance.making import ORGANIZATION, World
from perdure.domain.states import TaskState
from perdure.errors import Malformed
from perdure.store.relational import cursors
from perdure.store.views import TaskFilter

FAR = 2**63
ROWS = 2
Ask = Callable[[World, str | None], Awaitable[Any]]


async def tasks(world: World, where: TaskFilter, cursor: str | None) -> Any:
    return await world.views.tasks(ORGANIZATION, where, 1, cursor)


LISTS: dict[str, Ask] = {
    "all": lambda world, cursor: tasks(world, TaskFilter(), cursor),
    "waiting": lambda world, cursor: tasks(world, TaskFilter(states=(TaskState.QUEUED,)), cursor),
    "jobs": lambda world, cursor: world.views.jobs(ORGANIZATION, (), 1, cursor),
}


def forged(cursor: str, position: object) -> str:
    """The cursor of the same list, with another position."""
    document = cursors.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
    _, order, listed, _ = msgspec.json.decode(document)
    return cursors.write(order, listed, position)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("number", [FAR, -FAR - 1, 10**30])
async def test_a_position_that_no_row_can_have_is_a_broken_cursor(world: World, name: str, number: int) -> None:
    for _ in range(ROWS):
        await world.submit()
        await world.submit_job({"only": []})
    given = (await LISTS[name](world, None)).cursor
    assert given is not None
    document = cursors.urlsafe_b64decode(given.encode() + b"=" * (-len(given) % 4))
    position = msgspec.json.decode(document)[3]
    if isinstance(position, list):
        wrong: Any = [number if isinstance(each, int) else "\x00" for each in position]
    else:
        wrong = number
    with pytest.raises(Malformed) as refused:
        await LISTS[name](world, forged(given, wrong))
    assert refused.value.fields["field"] == "cursor"
