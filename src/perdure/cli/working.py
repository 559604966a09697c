"""Running a worker in this process, until a signal or the end of whoever started it."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from perdure.cli.loading import load_app
from perdure.cli.logs import configure
from perdure.errors import Misuse

if TYPE_CHECKING:
    from perdure.app import App


class WorkOptions(NamedTuple):
    """How `perdure worker` works."""

    target: str | None
    """`module:app`; the built-in kinds alone without."""
    store: str | None
    chosen: Mapping[str, Any]
    """Options of the worker; `None` and empty mean "not said"."""
    duties: bool
    attached: bool
    """Drain when standard input closes: whoever started this worker has gone."""
    json_log: bool


def work(options: WorkOptions) -> int:
    """Work until told to stop; returns the exit code."""
    app = the_app(options.target, options.store)
    configure(app.settings, as_json=options.json_log)
    _note_other_store(app, options)
    said = {name: value for name, value in options.chosen.items() if value not in (None, ())}
    asyncio.run(_work(app, options, said))
    return 0


def the_app(target: str | None, store: str | None, said_by: str = "PERDURE_STORE or --store") -> "App":
    """The user's app on `store`, or one that has the built-in kinds only.

    The module is imported with `PERDURE_STORE` set to `store`, which is where `App()` takes its store from. Raises
    `Misuse` for an app whose code names another one.
    """
    from perdure.app import App
    from perdure.settings import variable
    from perdure.wiring import same_store, shown

    if target is None:
        return App(store)
    if store is not None:
        os.environ[variable("store")] = store
    app = load_app(target)
    if store is not None and not same_store(app.settings.store, store):
        own = shown(app.settings.store)
        raise Misuse(
            f"{said_by} says {shown(store)}, the app {target} says {own}, a name that is fixed in its code: "
            f"say --store {own}, or write App() there, which takes the store that the command says",
            store=own,
        )
    return app


def _note_other_store(app: "App", options: WorkOptions) -> None:
    """Say so where the environment names a store that the app does not work on."""
    from perdure.cli.problems import warn
    from perdure.settings import variable
    from perdure.wiring import same_store, shown

    named = os.environ.get(variable("store"))
    own = app.settings.store
    if named and options.store is None and not same_store(own, named):
        sentence = f"{options.target} works on its own store {shown(own)}, not on PERDURE_STORE's {shown(named)}"
        warn(sentence, as_json=options.json_log)


async def _work(app: "App", options: WorkOptions, said: dict[str, Any]) -> None:
    from perdure.app.running import run_until_signal

    worker = app.worker(duties=options.duties, **said)
    try:
        with end_with_parent(worker.drain) if options.attached else contextlib.nullcontext():
            await run_until_signal(worker)
    finally:
        await app.close()


@contextlib.contextmanager
def end_with_parent(drain: Any) -> Iterator[None]:
    """Drain when nobody holds the other end of standard input any more, even if they were killed."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()

    def readable() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            drain()

    loop.add_reader(descriptor, readable)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
