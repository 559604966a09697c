"""The views of this store: the shared ones, but that they know where to look for the first tasks of lanes."""

from functools import partial

from perdure.ambient import SystemClock
from perdure.store.postgres.sightings import Sightings
from perdure.store.relational import queue_views
from perdure.store.relational.views import Readers, RelationalViews
from perdure.store.views import Overview, QueueView
from perdure.store.worker_times import USUAL, WorkerTimes


class PostgresViews(RelationalViews):
    """Meets `perdure.store.views.Views`."""

    def __init__(self, readers: Readers, worker_times: WorkerTimes = USUAL) -> None:
        super().__init__(readers, worker_times)
        self._sightings = Sightings(SystemClock().monotonic_us)

    async def overview(self, organization: str) -> Overview:
        active_us, ask = self._worker_times.active_us, self._sightings.ask
        asked = partial(queue_views.overview, organization=organization, active_us=active_us, ask=ask)
        return await self._readers.read(asked)

    async def queues(self, organization: str) -> list[QueueView]:
        active_us, ask = self._worker_times.active_us, self._sightings.ask
        asked = partial(queue_views.queues, organization=organization, active_us=active_us, ask=ask)
        return await self._readers.read(asked)
