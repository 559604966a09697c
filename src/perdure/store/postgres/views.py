"""The views of this store: the shared ones, but that they know where to look for the first tasks of lanes."""

from functools import partial

from perdure.ambient import SystemClock
from perdure.store.postgres.sightings import Sightings
from perdure.store.relational import queue_views
from perdure.store.relational.views import Readers, RelationalViews
from perdure.store.views import Overview, QueueView


class PostgresViews(RelationalViews):
    """Meets `perdure.store.views.Views`."""

    def __init__(self, readers: Readers) -> None:
        super().__init__(readers)
        self._sightings = Sightings(SystemClock().monotonic_us)

    async def overview(self, organization: str) -> Overview:
        ask = self._sightings.ask
        return await self._readers.read(partial(queue_views.overview, organization=organization, ask=ask))

    async def queues(self, organization: str) -> list[QueueView]:
        ask = self._sightings.ask
        return await self._readers.read(partial(queue_views.queues, organization=organization, ask=ask))
