"""Short ways to make what the tests of the engine are about."""

import asyncio
from typing import Any, NamedTuple

from perdure.ambient import Chance, Ids
from perdure.domain.attempt import Lease
from perdure.domain.outcome import Failed, Failure, Outcome, Succeeded
from perdure.domain.task import Body
from perdure.engine.engine import Engine
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.requests import Principal, TaskRequest
from perdure.errors import PerdureError
from perdure.store.ledger import Settled, Submitted, Swept, WorkerInfo
from perdure.store.sqlite.store import SqliteStore
from perdure.store.views import TaskView
from perdure.store.wakeups import Topic
from virtual_time import VirtualClock

ME = Principal("me")
KIND = "work"
DONE = Succeeded(Body(b'"done"'))
BOOM = Failed(Failure("ValueError", "boom", "Traceback ..."))


class Bench(NamedTuple):
    """What a test of the engine works with."""

    engine: Engine
    store: SqliteStore
    clock: VirtualClock
    ids: Ids

    def engine_with(self, **settings: Any) -> Engine:
        """Another engine on the same store, with other settings."""
        chosen = EngineSettings(**settings)
        return Engine(self.store, clock=self.clock, ids=self.ids, chance=Chance(1), settings=chosen)

    async def answer(self, **fields: Any) -> Submitted | PerdureError:
        """What one submit is answered."""
        (answer,) = await self.engine.submit([TaskRequest(**{"kind": KIND, **fields})], ME)
        return answer

    async def submit(self, **fields: Any) -> str:
        """The id of a task that was taken."""
        answer = await self.answer(**fields)
        if isinstance(answer, PerdureError):
            raise answer
        return answer.id

    async def refusal(self, **fields: Any) -> PerdureError:
        """The refusal of a task that was not taken."""
        answer = await self.answer(**fields)
        assert isinstance(answer, PerdureError), answer
        return answer

    async def view(self, task_id: str) -> TaskView:
        """A task as it stands."""
        view = await self.engine.views.task(ME.organization, task_id)
        assert view is not None
        return view

    async def worker(self, worker_id: str = "w", kinds: tuple[str, ...] = (KIND,), capacity: int = 100) -> str:
        """A worker that may claim."""
        info = WorkerInfo(worker_id, worker_id, "host", 1, "0.1", "build", kinds, ("default",), (), (), capacity)
        await self.engine.register(info)
        return worker_id

    async def lease(self, worker_id: str = "w") -> Lease:
        """One lease on what waits first."""
        (lease,) = await self.engine.claim(worker_id, 1)
        return lease

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        """End an attempt."""
        (settled,) = await self.engine.settle([(lease.hold, outcome)])
        return settled

    async def run_duty(self, name: str) -> Swept:
        """One run of one duty that has no history."""
        (duty,) = [each for each in self.engine.duties() if each.name == name]
        return await duty.run_once(self.clock.monotonic_us())


class QuietSubscription:
    """Hears only what a test says."""

    def __init__(self, hub: "QuietHub", topics: Topic) -> None:
        self._hub = hub
        self._topics = topics
        self._heard = Topic(0)
        self._hinted = asyncio.Event()

    def hint(self, topics: Topic) -> None:
        if topics & self._topics:
            self._heard |= topics & self._topics
            self._hinted.set()

    async def wait(self, timeout: float) -> Topic:
        try:
            async with asyncio.timeout(timeout):
                await self._hinted.wait()
        except TimeoutError:
            return Topic(0)
        self._hinted.clear()
        heard, self._heard = self._heard, Topic(0)
        return heard

    def close(self) -> None:
        self._hub.open.remove(self)


class QuietHub:
    """Hints for tests that have no store."""

    def __init__(self) -> None:
        self.open: list[QuietSubscription] = []

    def subscribe(self, topics: Topic) -> QuietSubscription:
        subscription = QuietSubscription(self, topics)
        self.open.append(subscription)
        return subscription

    def announce(self, topics: Topic) -> None:
        for each in self.open:
            each.hint(topics)
