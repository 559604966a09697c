"""A watch over one task's history."""

from conformance.making import ORGANIZATION, World
from perdure.store.views import EventView


class Watch:
    """Reads a task's history again and again, and checks that it only ever grows."""

    def __init__(self, world: World, task_id: str) -> None:
        self._world = world
        self._task_id = task_id
        self._seen: dict[str, EventView] = {}

    async def look(self) -> list[EventView]:
        """The history now."""
        events = await self._world.views.events(ORGANIZATION, self._task_id)
        ids = [event.id for event in events]
        assert ids == sorted(ids)
        assert len(ids) == len(set(ids))
        assert [event.at_us for event in events] == sorted(event.at_us for event in events)
        now = {event.id: event for event in events}
        assert {id: now.get(id) for id in self._seen} == self._seen
        self._seen = now
        return events

    async def types(self) -> list[str]:
        """The types of the lines now."""
        return [event.type for event in await self.look()]
