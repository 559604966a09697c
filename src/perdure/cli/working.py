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
    said = {name: value for name, value in options.chosen.items() if value not in (None, ())}
    asyncio.run(_work(app, options, said))
    return 0


def the_app(target: str | None, store: str | None) -> "App":
    """The user's app, or one that has the built-in kinds only. Raises `Misuse` where it insists on another store."""
    from perdure.app import App
    from perdure.cli.session import same_store

    if target is None:
        return App(store)
    app = load_app(target)
    if store is not None and not same_store(app.settings.store, store):
        raise Misuse(
            f"{target} is an app of the store {app.settings.store}, not of {store}: leave --store out, or let the app"
            " take its store from PERDURE_STORE",
            store=app.settings.store,
        )
    return app


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
