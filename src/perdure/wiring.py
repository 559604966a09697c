"""Where everything is put together: settings choose a store, the store carries an engine, the engine feeds workers.

The only module that may import from every layer below the app.
"""

import asyncio
import re
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from perdure.ambient import Chance, Clock, Ids, SystemClock
from perdure.client.address import gateway_url, is_gateway
from perdure.engine.engine import Engine, Operations
from perdure.engine.engine_settings import EngineSettings
from perdure.errors import Misuse
from perdure.settings import Settings
from perdure.store.copying import Rows
from perdure.store.health import Health
from perdure.store.schema import Migration
from perdure.store.sqlite.schema import known_steps, read_status
from perdure.store.sqlite.store import SqliteStore
from perdure.store.store import Store
from perdure.store.worker_times import WorkerTimes
from perdure.worker.registry import Registry
from perdure.worker.worker_settings import WorkerSettings

if TYPE_CHECKING:
    from perdure.telemetry.tracer import Tracer
    from perdure.worker.loop import Worker

POSTGRES_SCHEMES = ("postgresql", "postgres", "cockroachdb")
LATER_SCHEMES = ("redis", "rediss", "valkey")
"""Stores that are planned."""

AFAR_CLAIM_SECONDS = 25.0
"""How long a claim waits at a gateway."""
AFAR_CONTROL_SECONDS = 2.0
"""How often at most a worker asks a gateway for cancels that no hint told of."""


@dataclass(frozen=True, slots=True)
class System:
    """One store that is open, with its engine; or a gateway, with what it offers in the engine's place."""

    settings: Settings
    clock: Clock
    ids: Ids
    chance: Chance
    store: Store | None
    """`None` where a gateway has it."""
    engine: Operations
    known_kinds: set[str] = field(default_factory=set)
    """Kinds that the store is known to know."""
    wondered_at: set[str] = field(default_factory=set)
    """Kinds that were named without a handler here, and looked for in the store."""
    tracer: "Tracer | None" = None
    """Who makes traces of what is submitted and run here."""

    def worker(self, registry: Registry, **options: Any) -> "Worker":
        """A worker on this engine. Options replace the settings of the same names."""
        from perdure.worker.loop import Worker

        return Worker(
            self.engine,
            registry,
            clock=self.clock,
            ids=self.ids,
            settings=worker_settings(self.settings, **(options if self.store is not None else self._afar(options))),
            chance=self.chance,
            version=version("perdure"),
            address=shown(self.settings.store),
            tracer=self.tracer,
        )

    def _afar(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a worker whose source is a gateway: claims wait there, and cancels are hinted at."""
        interval = max(self.settings.control_interval, AFAR_CONTROL_SECONDS)
        return {"claim_wait": AFAR_CLAIM_SECONDS, "control_interval": interval, **options}

    async def close(self) -> None:
        """Let go of the store. Harmless when closed already."""
        await self.engine.close()
        await self.let_go()

    async def let_go(self) -> None:
        """Let go of the store from another event loop than the one that it was opened in, which is gone."""
        if self.store is not None:
            await self.store.close()

    def own_store(self) -> Store:
        """The store itself. Raises `Misuse` where a gateway has it."""
        if self.store is None:
            raise needs_store(self.settings.store)
        return self.store


async def open_system(
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    chance: Chance | None = None,
    inline: bool = False,
    migrate: bool = True,
    tracer: "Tracer | None" = None,
) -> System:
    """Open what the settings name. Raises `Misuse`, one of `Unavailable` or one of `StoreUnusable`.

    `inline` is for tests: no threads, every call of the store runs at once. Without `migrate`, a store whose schema is
    not current is `SchemaTooOld` and nothing is written to it. `tracer` goes before that of the settings.
    """
    tracer = tracer or _tracer_of(settings)
    ticking = clock or SystemClock()
    chance = chance or Chance()
    ids = ids or Ids(ticking)
    if is_gateway(settings.store):
        return System(settings, ticking, ids, chance, None, _remote(settings.store, ids, chance), tracer=tracer)
    store = await _open_store(settings, clock, inline, migrate)
    engine = Engine(store, clock=ticking, ids=ids, chance=chance, settings=engine_settings(settings))
    return System(settings, ticking, ids, chance, store, engine, tracer=tracer)


async def _open_store(settings: Settings, clock: Clock | None, inline: bool, migrate: bool) -> Store:
    patience, engine = settings.busy_timeout, engine_settings(settings)
    worker_times = WorkerTimes(engine.worker_active_us, engine.unroutable_after_us)
    if (url := postgres_url(settings.store)) is not None:
        # Here, because the driver is an extra.
        from perdure.store.postgres.store import PostgresStore

        return await PostgresStore.open(
            url,
            clock=clock,
            inline=inline,
            migrate=migrate,
            lock_timeout=patience,
            hints=settings.hints and (postgres_url(settings.hints) or settings.hints),
            prepare=settings.prepare,
            worker_times=worker_times,
        )
    path = sqlite_path(settings.store)
    return await SqliteStore.open(
        path, clock=clock, inline=inline, migrate=migrate, lock_timeout=patience, worker_times=worker_times
    )


def _tracer_of(settings: Settings) -> "Tracer | None":
    if settings.traces == "off":
        return None
    try:
        # Here, because it is an extra.
        from perdure.telemetry.opentelemetry_tracer import OpenTelemetryTracer
    except ImportError as error:
        raise Misuse(
            f"traces by OpenTelemetry need its API: install perdure with its extra otel, from a clone by"
            f" pip install 'path/to/clone[otel]' ({error})",
            field="traces",
        ) from error
    return OpenTelemetryTracer(version("perdure"))


def _remote(url: str, ids: Ids, chance: Chance) -> Operations:
    # Here, because importing an HTTP client takes longer than all the rest of a command that needs none.
    from perdure.client.operations import RemoteOperations
    from perdure.client.transport import Transport

    return RemoteOperations(Transport(gateway_url(url), chance), ids)


async def schema_status(settings: Settings) -> list[Migration]:
    """Every step of the schema that this perdure knows and which of them the store took; nothing is changed or made.

    Raises `SchemaTooNew`, `StoreUnusable` or one of `Unavailable`.
    """

    def read() -> list[Migration]:
        if (url := postgres_url(settings.store)) is not None:
            from perdure.store.postgres.schema import read_status as read_status_there

            return read_status_there(url)
        path = sqlite_path(settings.store)
        return read_status(path) if Path(path).exists() else known_steps()

    return await asyncio.to_thread(read)


def open_rows(url: str) -> Rows:
    """All rows of a store, for copying; its schema has to be current. Raises `Misuse` or one of `Unavailable`."""
    if (database := postgres_url(url)) is not None:
        from perdure.store.postgres.rows import PostgresRows

        return PostgresRows(database)
    from perdure.store.sqlite.rows import SqliteRows

    return SqliteRows(sqlite_path(url))


async def store_health(settings: Settings) -> Health:
    """How the store is; nothing is changed or made. Raises `SchemaTooNew`, one of `Unavailable`, or `Misuse`."""
    if (url := postgres_url(settings.store)) is not None:
        from perdure.store.postgres.health import examine as examine_there

        return await asyncio.to_thread(examine_there, url, SystemClock())
    from perdure.store.sqlite.health import examine

    return await asyncio.to_thread(examine, sqlite_path(settings.store), SystemClock())


def check_store(url: str) -> None:
    """Refuse what this version cannot open, before it is needed. Raises `Misuse`."""
    if is_gateway(url):
        gateway_url(url)
    elif postgres_url(url) is None:
        sqlite_path(url)


def needs_store(url: str) -> Misuse:
    """The refusal of what only works on the store itself."""
    return Misuse(f"this needs the store itself, and {url} is a gateway's: name the store that the gateway serves")


def postgres_url(url: str) -> str | None:
    """The URL of a PostgreSQL database as its driver takes it, or one of CockroachDB; `None` for anything else.

    Raises `Misuse` where the driver is missing.
    """
    scheme, _, rest = url.partition("://")
    family = scheme.lower().partition("+")[0]
    if not rest or family not in POSTGRES_SCHEMES:
        return None
    if find_spec("psycopg") is None:
        raise Misuse(
            "a PostgreSQL store needs its driver: install perdure with its extra postgres, from a clone by"
            " pip install 'path/to/clone[postgres]'"
        )
    return f"cockroachdb://{rest}" if family == "cockroachdb" else f"postgresql://{rest}"


def shown(url: str) -> str:
    """A store's URL for people to read: without a password."""
    return re.sub(r"(?<=[?&]password=)[^&]*", "***", re.sub(r"(://[^:/@]*):[^/]*@", r"\1@", url))


def same_store(one: str, other: str) -> bool:
    """Whether two ways to name a store mean the same file, the same database or the same gateway."""
    return _identity(one) == _identity(other)


def _identity(url: str) -> tuple[object, ...]:
    if is_gateway(url):
        return ("gateway", gateway_url(url))
    if (database := postgres_url(url)) is not None:
        from perdure.store.postgres.connecting import Address

        return ("postgres", Address(database).place)
    return ("sqlite", Path(sqlite_path(url)).absolute())


def sqlite_path(url: str) -> str:
    """The file of a store's URL. Raises `Misuse` for what this version cannot open, saying what it can."""
    scheme = urlsplit(url).scheme.lower() if "://" in url else ""
    family = scheme.partition("+")[0]
    if is_gateway(url):
        raise needs_store(url)
    if family in LATER_SCHEMES:
        raise Misuse(
            f"a {family}:// store is not available in this version: use a SQLite file, as a path or sqlite:///path, or "
            "postgresql://user@host/database",
            store=url,
        )
    if not scheme:
        return url
    if family != "sqlite":
        raise Misuse(
            f"{shown(url)!r} names no store: use the path of a SQLite file, sqlite:///path, or "
            "postgresql://user@host/database",
            store=shown(url),
        )
    path = url[len(scheme) + len("://") :]
    if not path.startswith("/") or path == "/":
        raise Misuse(f"{url!r} names no file: write sqlite:///relative/path or sqlite:////absolute/path", store=url)
    return path[1:]


def engine_settings(settings: Settings) -> EngineSettings:
    """The part of the settings that the engine goes by."""
    return EngineSettings(**{each.name: getattr(settings, each.name) for each in fields(EngineSettings)})


def worker_settings(settings: Settings, **options: Any) -> WorkerSettings:
    """The part of the settings that a worker goes by, except for `options`. Raises `Invalid` for an unknown one."""
    shared = {each.name for each in fields(WorkerSettings)} & {each.name for each in fields(Settings)}
    unknown = sorted(options.keys() - {each.name for each in fields(WorkerSettings)})
    if unknown:
        names = ", ".join(each.name for each in fields(WorkerSettings))
        raise Misuse(f"a worker has no option {unknown[0]!r}; its options are {names}")
    chosen: dict[str, Any] = {name: getattr(settings, name) for name in shared}
    if "organizations" not in options:
        chosen["organizations"] = (settings.organization,)
    return WorkerSettings(**{**chosen, **options})
