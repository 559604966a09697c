"""Transactions side by side: one is left open, another runs into it, and the first goes on."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from backends.postgres.crew import Writer
from perdure.store.postgres.faults import RETRIED
from perdure.store.postgres.transaction import Reached, Transaction

T = TypeVar("T")

WAIT_SECONDS = 20
BLOCKED = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'
"""


def run(
    writer: Writer, act: Callable[[Transaction], T], collided: Callable[[Exception], object] = lambda error: None
) -> T:
    """What `act` answers in a transaction of its own; run again where it collides, as a store's writer does."""
    gates: set[int] = set()
    while True:
        try:
            with writer.transaction() as tx:
                tx.begin_with(gates)
                return act(tx)
        except RETRIED as error:
            collided(error)
            gates.update(error.gates if isinstance(error, Reached) else ())


class Beside:
    """Runs things on threads beside, and waits until they are held up."""

    def __init__(self, url: str) -> None:
        self._watcher = psycopg.connect(url, autocommit=True)
        self.pool = ThreadPoolExecutor(8)

    def run(self, writer: Writer, act: Callable[[Transaction], T]) -> "Future[T]":
        """Run `act` beside, as `run` does."""
        return self.pool.submit(run, writer, act)

    def held_up(self, writer: Writer, act: Callable[[Transaction], T]) -> "Future[T]":
        """Run `act` beside, and return once it waits for another transaction."""
        future = self.run(writer, act)
        self.until_held_up(future)
        return future

    def until_held_up(self, future: "Future[Any]") -> None:
        """Return once a transaction of the database waits for another; `future` is what should."""
        while self._watcher.execute(BLOCKED).fetchone() == (0,):
            assert not future.done(), f"it did not wait, and answered {future.result()}"
            threading.Event().wait(0.002)

    def close(self) -> None:
        """Let go of threads and connection."""
        self.pool.shutdown()
        self._watcher.close()


@contextmanager
def crew(url: str, isolation: str, size: int = 4) -> Iterator[list[Writer]]:
    """Sessions of one database, and a worker `w`."""
    made = [Writer(url, isolation) for _ in range(size)]
    made[0].register()
    try:
        yield made
    finally:
        for writer in made:
            writer.close()


def answer(future: "Future[Any]") -> Any:
    """What came of it."""
    return future.result(WAIT_SECONDS)
