"""The store that a command works on: opened for it, closed after it."""

import asyncio
import contextlib
import getpass
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from perdure.ambient import process_id

if TYPE_CHECKING:
    from perdure.engine.engine import Operations
    from perdure.engine.requests import Principal
    from perdure.settings import Settings
    from perdure.store.views import Views
    from perdure.wiring import System

R = TypeVar("R")

_HOST_AND_PORT = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}")


class Session(NamedTuple):
    """An open store and who acts on it."""

    system: "System"
    principal: "Principal"

    @property
    def operations(self) -> "Operations":
        """What can be done."""
        return self.system.engine

    @property
    def views(self) -> "Views":
        """What can be read."""
        return self.system.engine.views

    @property
    def organization(self) -> str:
        """Whose tasks these are."""
        return self.principal.organization


def on_store(
    store: str | None, work: Callable[[Session], Awaitable[R]], *, create: bool = False, quiet: bool = False
) -> R:
    """Open the store, do the work, close the store, return what the work returned.

    A store that does not exist is made, and one that is not current is migrated, only if `create`: a look shall leave
    nothing behind, neither an empty file nor tables in somebody else's database. That a file was made is noted unless
    `quiet`: the command may have been meant for a store elsewhere.
    """

    async def with_session() -> R:
        async with session(settings_for(store), create=create, quiet=quiet) as opened:
            return await work(opened)

    return asyncio.run(with_session())


@contextlib.asynccontextmanager
async def session(settings: "Settings", *, create: bool, quiet: bool = True) -> AsyncIterator[Session]:
    """An open store. Raises `Unavailable` or `StoreUnusable` when it cannot be had."""
    from perdure.cli.beside import beside_the_work
    from perdure.engine.requests import Principal
    from perdure.errors import PerdureError
    from perdure.wiring import open_system

    missing = _missing_file(settings.store)
    if not create:
        check_exists(settings.store)
    system = await open_system(settings, migrate=create)
    try:
        yield Session(system, Principal(settings.principal, settings.organization))
    except BaseException:
        with contextlib.suppress(PerdureError):  # Why the work failed is what is told.
            await system.close()
        raise
    if missing is not None and not quiet:
        from perdure.cli.output import write_note

        write_note(f"made a new store, {missing.absolute()}")
    with beside_the_work("the work is done, and the store was not closed in order"):
        await system.close()


def check_exists(store: str) -> None:
    """Raise `StoreUnreachable` where there is no file. Whether a server is there shows when it is asked."""
    from perdure.errors import StoreUnreachable

    path = _missing_file(store)
    if path is not None:
        if _HOST_AND_PORT.fullmatch(store):
            raise StoreUnreachable(
                f"there is no store at {path}: is it a gateway? Then say http://{store}", path=str(path)
            )
        raise StoreUnreachable(
            f"there is no store at {path}: name one with --store or PERDURE_STORE; `perdure db migrate` makes one",
            path=str(path),
        )


def _missing_file(store: str) -> Path | None:
    """The file of a store that is one and is not there."""
    from perdure.client.address import is_gateway
    from perdure.wiring import postgres_url, sqlite_path

    if is_gateway(store) or postgres_url(store) is not None:
        return None
    path = Path(sqlite_path(store))
    return None if path.exists() else path


def settings_for(store: str | None) -> "Settings":
    """The settings of this command line: whoever runs it acts, unless file or environment name somebody."""
    from perdure.settings import Settings

    return Settings.load(defaults={"principal": f"cli:{user_name()}"}, store=store)


def user_name() -> str:
    """Who runs this process, as the history shall name them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"process-{process_id()}"
