"""What a client does that races for unique keys: submits of many threads at one instant, some of them undone."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg

import perdure
from chaos.operations import OperationLog
from perdure.errors import PerdureError, StoreBusy

UNDONE = 5
"""Every so many threads submit inside a transaction of their own, and roll back."""
BUSY_MS = 30_000
BUSY_TRIES = 10


def race(app: perdure.App, log: OperationLog, orders: dict[str, Any], store: str) -> None:
    """Threads submit for one key at the same instant, key after key. Each has a number of its own as its payload."""
    for place, key in enumerate(orders["keys"]):
        barrier = threading.Barrier(orders["threads"])
        first = orders["first"] + place * orders["threads"]
        threads = [
            threading.Thread(target=_race_once, args=(app, log, key, first + n, orders, barrier, store))
            for n in range(orders["threads"])
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def _race_once(
    app: perdure.App,
    log: OperationLog,
    key: str,
    number: int,
    orders: dict[str, Any],
    barrier: threading.Barrier,
    store: str,
) -> None:
    unique = perdure.Unique(**orders["unique"])
    undone = number % UNDONE == UNDONE - 1
    entry = f"{key}|{number}|{'undone' if undone else 'kept'}"
    barrier.wait()
    log.asked(entry)

    def submit() -> Any:
        if undone:
            with _undone(store) as connection:
                return app.sync.submit("probe", number=number, unique=unique, unique_key=key, connection=connection)
        return app.sync.submit("probe", number=number, unique=unique, unique_key=key)

    try:
        handle = _patiently(submit)
    except PerdureError as error:
        log.refused(entry, error.code)
    else:
        log.answered(entry, id=handle.id, outcome=handle.outcome)


def _patiently(submit: Callable[[], Any]) -> Any:
    """Fifty keep each other waiting: whoever is told that the store is busy, or that the file is where they begin a
    transaction of their own, has stored nothing, and comes again.
    """
    for _ in range(BUSY_TRIES):
        try:
            return submit()
        except (StoreBusy, apsw.BusyError):
            continue
    return submit()


@contextmanager
def _undone(store: str) -> Iterator[Any]:
    """A transaction that is rolled back in the end."""
    if store.startswith("postgres"):
        with psycopg.connect(store) as server:
            yield server
            server.rollback()
        return
    file = apsw.Connection(store)
    try:
        file.set_busy_timeout(BUSY_MS)
        file.execute("BEGIN IMMEDIATE")
        yield file
        file.execute("ROLLBACK")
    finally:
        file.close()
