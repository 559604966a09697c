"""The worker: claims what its free slots can take, has it run, and sees to it that every outcome is delivered."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from perdure.ambient import Chance, Clock, Ids, hostname, process_id
from perdure.domain.attempt import Lease
from perdure.domain.limits import CLAIM_MAX_TASKS, SECOND_US
from perdure.domain.outcome import HandedBack, Outcome
from perdure.domain.ranges import RANGES
from perdure.errors import Unavailable
from perdure.store.ledger import WorkerInfo, WorkerOrder
from perdure.store.wakeups import Topic
from perdure.telemetry.tracer import Tracer
from perdure.worker.backoff import Backoff, ToldBackoff
from perdure.worker.claiming import Leaving
from perdure.worker.drain import drain, hand_back_waiting, leave
from perdure.worker.ending import Ending as Ending
from perdure.worker.executor import Executor
from perdure.worker.held import HeldAttempt, StopReason
from perdure.worker.journal import Journal
from perdure.worker.keeping import Keeping, poster
from perdure.worker.lanes import Lanes
from perdure.worker.lease_keeper import LeaseKeeper
from perdure.worker.pace import FIRST_MAX_TASKS, Pace
from perdure.worker.prefetch import Prefetch
from perdure.worker.registry import Registry
from perdure.worker.reporting import Reporter
from perdure.worker.resting import Rest
from perdure.worker.settling import SettleBuffer
from perdure.worker.stale import StaleWatch
from perdure.worker.standing import Standing
from perdure.worker.work_source import WorkSource
from perdure.worker.worker_settings import WorkerSettings

logger = logging.getLogger("perdure.worker")

LISTEN_SECONDS = 60.0


class Worker:
    """Runs the handlers of a registry on the tasks of a source.

    `run` belongs to one event loop; `drain`, `abandon` and `resize` are called on that loop (signal handlers of asyncio
    are). A worker runs once.
    """

    _reporter: Reporter
    _buffer: SettleBuffer
    _keeper: LeaseKeeper
    _standing: Standing

    def __init__(
        self,
        source: WorkSource,
        registry: Registry,
        *,
        clock: Clock,
        ids: Ids,
        settings: WorkerSettings | None = None,
        chance: Chance | None = None,
        version: str = "unknown",
        handled: Callable[[HeldAttempt, Outcome], None] | None = None,
        address: str = "",
        tracer: Tracer | None = None,
    ) -> None:
        self.id = ids.new()
        self.settings = settings or WorkerSettings()
        self.concurrency = self.settings.concurrency
        self.order = WorkerOrder.WORK
        self._source = source
        self._registry = registry
        self._clock = clock
        self._chance = chance or Chance()
        self._version = version
        self._handled = handled
        self._tracer = tracer
        self._journal = Journal(address)
        self._held: dict[str, HeldAttempt] = {}
        self._unknown: list[Lease] = []
        self._claimed = 0
        self._ending: Ending | None = None
        self._dry = False
        self._hinted = True
        self._pace = Pace(self.settings.poll, self._chance)
        self._rest = Rest(clock)
        self._attentive = asyncio.Event()
        self._leaving = Leaving()
        self._main: asyncio.Task[Any] | None = None
        self._lanes: Lanes | None = None
        self._prefetch = Prefetch(self.settings, registry.starts_at_rates)
        self._stale: StaleWatch | None = None

    @property
    def held(self) -> int:
        """How many attempts it holds now: waiting, running, and ended but not yet settled."""
        return len(self._held)

    @property
    def claimed(self) -> int:
        """How many attempts it has claimed since the start."""
        return self._claimed

    @property
    def info(self) -> WorkerInfo:
        """What it says of itself."""
        settings = self.settings
        queues = settings.queues or tuple(sorted({"default", *self._registry.queues}))
        return WorkerInfo(
            id=self.id,
            name=settings.name or f"{hostname()}:{process_id()}",
            host=hostname(),
            pid=process_id(),
            version=self._version,
            build=settings.build,
            kinds=self._registry.kinds,
            queues=queues,
            organizations=settings.organizations,
            capabilities=tuple(sorted(settings.capabilities)),
            capacity=self._capacity(),
        )

    def drain(self) -> None:
        """Claim nothing more, let handlers end within the grace period, hand the rest back, return from `run`."""
        self._end(Ending.DRAINED)

    def abandon(self) -> None:
        """Return from `run` at once. What is held is not handed back; its leases run out."""
        self._ending = Ending.ABANDONED
        if self._main is not None:
            self._main.cancel()

    def resize(self, concurrency: int) -> None:
        """Run that many handlers at once from now on; running ones are not touched. Raises `Invalid`."""
        RANGES["concurrency"].check("concurrency", concurrency)
        self.concurrency = concurrency
        if self._lanes is not None:
            self._lanes.concurrency = concurrency
            for _ in range(concurrency):
                self._lanes.fill()
            self._keeper.look_now()
        self._rest.ring()

    def _is_ending(self) -> bool:
        return self._ending is not None

    def _end(self, ending: Ending) -> None:
        if self._ending is None:
            self._ending = ending
            self._leaving.set()
            self._rest.ring()

    def _capacity(self) -> int:
        """How many leases it may hold; none any more once it is about to end, which is seen by that."""
        return 0 if self._is_ending() else self.settings.capacity_for(self.concurrency)

    async def run(self) -> Ending:
        """Work until drained. Returns why it ended. Cancelling it is like `abandon`, except that it raises."""
        self._main = asyncio.current_task()
        keeping, tasks = self._assemble()
        try:
            await self._register()
            keeping.start()
            self._journal.began(self.info, self.concurrency)
            await self._claim_until_ending()
            await self._drain()
            # A heartbeat that overtook the leave would find the worker gone and register it again.
            await keeping.stop()
            await leave(self._source, self.id)
            self._journal.ended(self.id, self._ending or Ending.DRAINED)
        except asyncio.CancelledError:
            if self._ending is not Ending.ABANDONED or self._main is None:
                raise
            self._main.uncancel()
        finally:
            await self._take_apart(keeping, tasks)
        return self._ending or Ending.DRAINED

    def _assemble(self) -> tuple[Keeping, list[asyncio.Task[None]]]:
        loop = asyncio.get_running_loop()
        settings, clock = self.settings, self._clock
        lanes = self._lanes = Lanes(clock, self.concurrency, settings.stop_grace, self._finished)
        self._stale = StaleWatch(lanes, self._prefetch, clock)
        self._reporter = Reporter(self._source, clock, settings.report_interval, lanes.stop, settings.task_logs)
        timeout, tracer = settings.default_timeout, self._tracer
        lanes.use(Executor(self._source, self._reporter, clock, timeout, lanes.fill, lanes.stop, tracer))
        self._buffer = SettleBuffer(self._source, self._reporter, clock, self._chance, self._settled, self._journal)
        self._keeper = LeaseKeeper(
            self._source,
            info=lambda: self.info,
            held=self._held,
            settings=settings,
            clock=clock,
            chance=self._chance,
            post=poster(loop),
            stop=lanes.stop,
            ordered=self._ordered,
        )
        self._standing = Standing(self._source.subscribe(), clock, self._stood_by)
        tasks = [
            loop.create_task(self._buffer.run(), name="perdure-settle"),
            loop.create_task(self._listen(), name="perdure-listen"),
        ]
        return Keeping(self._keeper, settings.keeper_thread), tasks

    async def _take_apart(self, keeping: Keeping, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if self._stale is not None:
            self._stale.close()
        self._reporter.close()
        self._standing.subscription.close()
        if self._lanes is not None:
            await self._lanes.close()
        await keeping.stop()
        await asyncio.wait(tasks)
        self._held.clear()

    async def _register(self) -> None:
        backoff = Backoff(self._chance)
        while self._ending is None:
            try:
                self._ordered(await self._source.register(self.info))
            except Unavailable as error:
                logger.warning("the worker cannot register yet: %s", error)
                await self._rest.whatever(backoff.next_seconds(), self._is_ending)
            else:
                return

    async def _drain(self) -> None:
        lanes, settings, recycling = self._lanes, self.settings, self._ending is Ending.RECYCLED
        assert lanes is not None
        if self._held:
            self._keeper.look_now()
        await drain(lanes, self._buffer, settings.grace, settings.stop_grace, run_waiting=recycling)

    async def _claim_until_ending(self) -> None:
        backoff = ToldBackoff(self._chance, "work cannot be claimed for now", "work can be claimed again")
        while self._ending is None:
            self._rest.look()
            wanted = self._wanted()
            if not wanted:
                await self._rest.until_rung(None)
                continue
            wait_us = self._pace.look_at_us - self._clock.monotonic_us()
            last_look = self.settings.stop_when_idle and not self._held
            if self._dry and not self._hinted and wait_us > 0 and not last_look:
                await self._stand_by(wanted, wait_us / SECOND_US)
                continue
            try:
                await self._hand_back()
                await self._claim(wanted)
                backoff.reset()
            except Unavailable as error:
                backoff.tell(error)
                await self._rest.whatever(backoff.next_seconds(), self._is_ending)
            except Exception:
                logger.exception("claiming failed; it is tried again")
                await self._rest.whatever(backoff.next_seconds(), self._is_ending)

    def _wanted(self) -> int:
        """How many leases there is room for; 0 while it is not worth asking."""
        if self.order is not WorkerOrder.WORK:
            return 0
        lanes = self._lanes
        assert lanes is not None
        room = self._prefetch.room(self.concurrency, lanes.active, len(lanes.waiting))
        room = min(room, self._capacity() - len(self._held), CLAIM_MAX_TASKS)
        if self.settings.max_tasks is not None:
            room = min(room, self.settings.max_tasks - self._claimed)
        return max(room, 0)

    async def _claim(self, wanted: int) -> None:
        self._hinted = False
        sent_us = self._clock.monotonic_us()
        wait = 0.0 if self.settings.stop_when_idle else self.settings.claim_wait
        call = self._source.claim(self.id, wanted := min(wanted, FIRST_MAX_TASKS if self._dry else wanted), wait=wait)
        leases = (await self._leaving.unless_set(call) or []) if wait else await call
        answered_us = self._clock.monotonic_us()
        self._prefetch.claimed(len(leases), wanted, sent_us, answered_us)
        self._dry = len(leases) < wanted and not wait
        if self._dry:
            self._pace.looked(answered_us, bool(leases))
        if leases:
            self._admit(leases, sent_us, answered_us)
            if len(leases) < wanted:
                # There was no more: what came begins before more is asked for.
                await asyncio.sleep(0)
            await self._hand_back()
        elif wait:
            # It may have been answered because of an order.
            self._keeper.look_now()
        elif self.settings.stop_when_idle and not self._held:
            self._end(Ending.IDLE)

    async def _stand_by(self, wanted: int, seconds: float) -> None:
        """Rest, and take what a commit of this loop brings meanwhile."""
        withdraw = self._source.stand_by(self.id, min(wanted, FIRST_MAX_TASKS), self._standing)
        try:
            await self._rest.until_rung(seconds)
        finally:
            withdraw()

    def _stood_by(self, leases: list[Lease], sent_us: int, answered_us: int) -> None:
        if leases:
            self._pace.looked(answered_us, True)
            self._admit(leases, sent_us, answered_us)
        if not leases or self._unknown:
            self._hinted = True
        self._rest.ring()

    def _admit(self, leases: list[Lease], sent_us: int, answered_us: int) -> None:
        """Hold leases and let them wait for their turn; those that nothing here can run are to be handed back."""
        fresh: list[HeldAttempt] = []
        for lease in leases:
            handler = self._registry.find(lease.kind)
            if handler is None:
                self._unknown.append(lease)
            elif lease.hold.attempt_id not in self._held:
                held = HeldAttempt(lease, handler, sent_us, answered_us)
                self._held[lease.hold.attempt_id] = held
                fresh.append(held)
        self._claimed += len(fresh)
        if fresh:
            self._attentive.set()
            assert self._lanes is not None
            self._keeper.look_soon(sent_us, min(held.lease_us for held in fresh))
            self._lanes.admit(fresh)
            if self._ending not in (None, Ending.RECYCLED):
                hand_back_waiting(self._lanes)
            assert self._stale is not None
            self._stale.watch()
        if self.settings.max_tasks is not None and self._claimed >= self.settings.max_tasks:
            self._end(Ending.RECYCLED)

    async def _hand_back(self) -> None:
        """What nothing here can run."""
        unknown, self._unknown = self._unknown, []
        if unknown:
            self._journal.unknown_kinds(unknown)
            await self._source.settle([(each.hold, HandedBack()) for each in unknown])

    async def _listen(self) -> None:
        subscription = self._standing.subscription
        while True:
            if self.settings.claim_wait and not self._held and self.order is WorkerOrder.WORK:
                # Of work and of orders the claim tells that waits at the source; there is nothing to be cancelled.
                self._attentive.clear()
                await self._attentive.wait()
            try:
                topics = await subscription.wait(LISTEN_SECONDS)
            except Exception as error:
                if not isinstance(error, Unavailable):
                    logger.exception("waiting for hints failed; it is tried again")
                await asyncio.sleep(self.settings.poll)
                continue
            if topics & Topic.READY:
                self._hinted = True
                self._rest.ring()
            if topics & Topic.CONTROL:
                self._keeper.look_now()

    # What the others tell it, on its loop

    def _finished(self, held: HeldAttempt, outcome: Outcome | None) -> None:
        if held.started_us is not None:
            self._prefetch.note(self._clock.monotonic_us() - held.started_us, len(held.lease.payload.data))
        if outcome is not None and self._handled is not None:
            self._handled(held, outcome)
        if outcome is None or held.lost:
            self._reporter.forget(held)
            self._held.pop(held.hold.attempt_id, None)
        if outcome is not None:
            self._buffer.add(held, outcome)
        self._rest.ring()

    def _settled(self, attempts: list[HeldAttempt]) -> None:
        for held in attempts:
            self._held.pop(held.hold.attempt_id, None)
        self._rest.ring()

    def _ordered(self, order: WorkerOrder) -> None:
        if order is self.order:
            return
        logger.info("the worker is ordered to %s", order)
        self.order = order
        self._attentive.set()
        self._rest.ring()
        if order is WorkerOrder.DRAIN:
            self._end(Ending.DRAINED)
        elif order is WorkerOrder.REVOKE:
            self._end(Ending.REVOKED)
            assert self._lanes is not None
            for held in list(self._held.values()):
                self._lanes.stop(held, StopReason.REVOKED)
