"""A copy keeps its own time, and its lines go on in front as at the end."""

from pathlib import Path

import pytest

from backends.copying.test_copying import WAYS, Place, copied, make_empty
from conformance.stores import ManualClock
from perdure.domain.limits import SECOND_US
from perdure.domain.settlement import Settlement

HOUR_US = 3_600 * SECOND_US


class SteppedClock(ManualClock):
    """A clock whose wall time can be stepped."""

    step_us = 0

    def wall_us(self) -> int:
        return super().wall_us() + self.step_us


@pytest.mark.parametrize("way", WAYS, ids=" to ".join)
async def test_what_is_handed_back_in_a_copy_comes_before_what_waits_there(
    way: tuple[str, str], tmp_path: Path
) -> None:
    clock = ManualClock()
    places = [Place(name, tmp_path / part) for name, part in zip(way, ("source", "target"), strict=True)]
    async with places[0].world(clock) as world:
        ids = [await world.submit() for _ in range(5)]
    await make_empty(places[1], clock)
    copied(places)
    async with places[1].world(clock) as copy:
        await copy.worker()
        await copy.finish(await copy.claim_one(), settlement=Settlement.handed_back())
        last = await copy.submit()
        assert [lease.hold.task_id for lease in await copy.claim(6)] == [*ids, last]
    for each in places:
        each.plug.leave(each.folder)


@pytest.mark.parametrize("source", ["sqlite", "postgres"])
async def test_a_file_that_is_copied_to_keeps_its_own_time(source: str, tmp_path: Path) -> None:
    clock = SteppedClock()
    places = [Place(source, tmp_path / "source"), Place("sqlite", tmp_path / "target")]
    for place in places:
        await make_empty(place, clock)
    async with places[1].world(clock) as copy:
        before_us = await copy.now_us()
    clock.step_us = -HOUR_US
    copied(places)
    async with places[1].world(clock) as copy:
        assert await copy.now_us() == before_us
    places[0].plug.leave(places[0].folder)
