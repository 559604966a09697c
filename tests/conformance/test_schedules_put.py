"""Schedules that are put: what they may say about their next instant."""

import pytest

from conformance.making import World
from conformance.test_schedules import put
from perdure.errors import Conflict
from perdure.store.schedules import Seen, Standing


async def test_a_first_instant_that_has_come_is_a_conflict_and_changes_nothing(world: World) -> None:
    now = await world.now_us()
    with world.unchanged(), pytest.raises(Conflict):
        await put(world, standing=Standing(now, now, now))
    first = await put(world, standing=Standing(now, now + 1, now + 1))
    world.advance(60)
    seen = Seen(first.version, first.next_us)
    with world.unchanged(), pytest.raises(Conflict):
        await put(world, seen=seen, standing=Standing(now, now + 2, now + 2), document="{}")
    # Nothing was decided about it yet, and that is still so.
    second = await put(world, seen=seen, standing=Standing(now, first.next_us, first.look_us), document="{}")
    assert (second.document, second.next_us) == ("{}", now + 1)
