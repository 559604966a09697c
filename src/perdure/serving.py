"""The roles of one process: gateway, worker, sweeper (the background duties), or all of them, started and stopped in
order.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from perdure.app.app import App
from perdure.domain import limits
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Outcome
from perdure.engine.duties import Duty
from perdure.errors import Misuse, PerdureError
from perdure.gateway.access import Address, LocalAccess, parse_listen
from perdure.gateway.gateway import Gateway, Surroundings
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.operating_handlers import Told
from perdure.gateway.route import Route
from perdure.gateway.routes import ROUTES, WATCHING
from perdure.gateway.short_pauses import short_pauses
from perdure.settings import Settings
from perdure.telemetry.logs import LogLines
from perdure.telemetry.metrics import Metrics
from perdure.telemetry.observed import OUTCOMES, ObservedDuty, ObservedOperations
from perdure.telemetry.several import Several
from perdure.wiring import System, shown, worker_settings

if TYPE_CHECKING:
    from perdure.worker.held import HeldAttempt
    from perdure.worker.loop import Worker

Role = Literal["all", "gateway", "worker", "sweeper"]
ROLES: tuple[Role, ...] = ("all", "gateway", "worker", "sweeper")
SECRET_SETTINGS = frozenset({"store"})
"""Not told over HTTP: an address may hold a password, a path is nobody's business."""

_log = logging.getLogger("perdure.serve")


@dataclass(frozen=True, slots=True)
class Watched:
    """A system whose doings are observed."""

    system: System
    metrics: Metrics
    observer: Several

    @classmethod
    def over(cls, system: System) -> "Watched":
        """Observe a system, beginning now."""
        metrics = Metrics(system.clock, version("perdure"))
        return cls(system, metrics, Several(metrics, LogLines()))

    def gateway(self, app: App, gateway_limits: GatewayLimits, routes: Sequence[Route] = ROUTES) -> Gateway:
        """A gateway to this system."""
        system = self.system
        operations: Any = ObservedOperations(system.engine, self.observer)
        return Gateway(
            Surroundings(
                operations=operations,
                access=LocalAccess(app.principal),
                principal=app.principal,
                limits=gateway_limits,
                observer=self.observer,
                metrics=self.render,
                notices=system.own_store().notices,
                of_itself=Told(version("perdure"), told_settings(system), told_limits(gateway_limits)),
                clock=system.clock,
                ids=system.ids,
                worker_active=system.settings.worker_active,
                prove_writes=system.own_store().prove_writes,
            ),
            routes,
        )

    def worker(self, app: App, seen: Callable[[], None] | None, options: Mapping[str, Any]) -> "Worker":
        """A worker on this system."""
        from perdure.worker.loop import Worker

        system = self.system
        operations: Any = ObservedOperations(system.engine, self.observer, seen)
        return Worker(
            operations,
            app.registry,
            clock=system.clock,
            ids=system.ids,
            settings=worker_settings(system.settings, **options),
            chance=system.chance,
            version=version("perdure"),
            handled=self._handled,
            address=shown(system.settings.store),
            tracer=system.tracer,
        )

    def duty(self, duty: Duty, seen: Callable[[], None]) -> Duty:
        """A duty of this system."""
        return ObservedDuty(duty, self.observer, self.system.clock, seen)

    async def render(self) -> bytes:
        """All metrics as text for Prometheus; while the store is away, without what only it knows."""
        system = self.system
        try:
            overview = await system.engine.views.overview(system.settings.organization)
            breakers = await system.engine.views.breakers(system.settings.organization)
        except PerdureError:
            overview, breakers = None, []
        return self.metrics.render(overview, system.clock.wall_us(), breakers)

    def _handled(self, held: "HeldAttempt", outcome: Outcome) -> None:
        if held.started_us is not None:
            seconds = (self.system.clock.monotonic_us() - held.started_us) / SECOND_US
            self.observer.handled(held.lease.kind, OUTCOMES[type(outcome)], seconds)


WITHOUT_DUTIES = (
    "no schedule fires and nothing that is lost is ended by this process: `perdure serve --role sweeper` does it,"
    " or `perdure worker` on the store itself; workers over HTTP do not"
)


class Serving:
    """One process in its roles. `run` serves until `stop`.

    Stopping: tell that the process is not ready any more; let the worker finish what it holds while the gateway still
    answers; then the gateway, the duties and the store, in this order.
    """

    def __init__(
        self,
        app: App,
        role: Role,
        listen: Address,
        *,
        options: Mapping[str, Any] | None = None,
        gateway_limits: GatewayLimits | None = None,
    ) -> None:
        self._app = app
        self._role: Role = role
        self._listen = listen
        self._options = dict(options or {})
        self._limits = gateway_limits or limits_of(app.settings)
        self._stopping = asyncio.Event()
        self._gateway: Gateway | None = None
        self.url: str | None = None
        """Where the gateway listens, once it does."""
        self.listening = asyncio.Event()
        """Set when all roles have begun."""

    def stop(self) -> None:
        """End in order. Harmless when ending already."""
        if self._gateway is not None:
            self._gateway.readiness.close()
        self._stopping.set()

    async def run(self) -> str | None:
        """Serve. Returns why the worker ended, where it was the worker."""
        system = await self._app.system()
        if system.store is None:
            raise Misuse("a gateway serves a store, not another gateway: name a store with --store or PERDURE_STORE")
        watched = Watched.over(system)
        async with contextlib.AsyncExitStack() as stack:
            if self._role in ("all", "sweeper"):
                engine: Any = system.engine
                await stack.enter_async_context(
                    engine.duty_runner(lambda duty: watched.duty(duty, self._seen("duties")))
                )
            if self._role in ("all", "gateway"):
                await self._open_gateway(watched, stack, self._listen, ROUTES)
            elif (where := self._app.settings.metrics_listen) is not None:
                await self._open_gateway(watched, stack, parse_listen(where), WATCHING)
            if self._role in ("all", "worker"):
                return await self._work(watched)
            self.listening.set()
            _log.info("serving as %s", self._role)
            if self._role == "gateway":
                _log.info("%s", WITHOUT_DUTIES)
            await self._stopping.wait()
        return None

    async def _open_gateway(
        self, watched: Watched, stack: contextlib.AsyncExitStack, listen: Address, routes: Sequence[Route]
    ) -> None:
        from perdure.gateway.server import GatewayServer

        gateway = self._gateway = watched.gateway(self._app, self._limits, routes)
        server = GatewayServer(gateway, listen, self._limits, watched.system.clock)
        await stack.enter_async_context(server)
        stack.enter_context(short_pauses())
        self.url = server.url
        if self._role in ("all", "sweeper"):
            gateway.readiness.expect("duties")

    async def _work(self, watched: Watched) -> str | None:
        app = self._app
        await watched.system.engine.declare(app.registry.definitions(), app.principal)
        await app.schedules.declare_on(watched.system.engine.schedules, app.principal)
        worker = watched.worker(app, self._seen("worker"), self._options)
        if self._gateway is not None:
            self._gateway.readiness.expect("worker")
        running = asyncio.create_task(worker.run(), name="perdure-worker")
        stopping = asyncio.create_task(self._stopping.wait(), name="perdure-stopping")
        self.listening.set()
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._role == "all" and not self._stopping.is_set():
                self._tell_of_end(str(running.result()))
                await stopping
            worker.drain()
            return await running
        finally:
            stopping.cancel()

    def _tell_of_end(self, ending: str) -> None:
        """The worker has ended by itself, by an order or for its `max_tasks`."""
        notice = f"the worker of this process has ended ({ending}); gateway and duties go on: restart it for a worker"
        _log.warning("%s", notice)
        if self._gateway is not None:
            self._gateway.readiness.ended("worker", notice)

    def _seen(self, what: str) -> Callable[[], None]:
        def seen() -> None:
            if self._gateway is not None:
                self._gateway.readiness.succeeded(what)

        return seen


def told_settings(system: System) -> dict[str, Any]:
    """The settings in effect, without what is nobody's business."""
    settings = system.settings
    return {each.name: getattr(settings, each.name) for each in fields(settings) if each.name not in SECRET_SETTINGS}


def limits_of(settings: Settings) -> GatewayLimits:
    """The limits of a gateway that can be chosen."""
    return GatewayLimits(connections=settings.connections, client_rate=settings.client_rate)


def told_limits(gateway_limits: GatewayLimits) -> dict[str, int | float]:
    """The limits of requests."""
    return {
        "payload_max_bytes": limits.PAYLOAD_MAX_BYTES,
        "result_max_bytes": limits.RESULT_MAX_BYTES,
        "json_max_depth": limits.JSON_MAX_DEPTH,
        "submit_max_tasks": limits.SUBMIT_MAX_TASKS,
        "job_max_tasks": limits.JOB_MAX_TASKS,
        "job_max_edges": limits.JOB_MAX_EDGES,
        "list_max_rows": limits.LIST_MAX_ROWS,
        **asdict(gateway_limits),
    }
