"""Celery on Valkey: acknowledged after the work, not taken before there is a process for it, visible again after ten
seconds. It has no keys, and counts no lost workers.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from celery import Celery

from bench.faults.notes import Notes
from bench.faults.programs.commands import AT_ONCE, LEASE_SECONDS, main, run_plainly


class OnCelery:
    """One app with one task."""

    def __init__(self, url: str, notes: Notes) -> None:
        self.app = Celery("faults", broker=url)
        self.app.conf.update(
            task_acks_late=True,
            task_reject_on_worker_lost=True,
            task_ignore_result=True,
            worker_prefetch_multiplier=1,
            worker_hijack_root_logger=False,
            broker_connection_retry_on_startup=True,
            broker_transport_options={"visibility_timeout": LEASE_SECONDS},
        )

        @self.app.task(name="work")
        def work(number: int, seconds: float) -> None:
            run_plainly(notes, number, seconds)

    def prepare(self) -> None:
        """There is nothing to make."""

    def work(self) -> None:
        """Work until ended."""
        options = ["--pool", "prefork", "--concurrency", str(AT_ONCE), "--loglevel", "WARNING", "--hostname", "w@%h"]
        self.app.worker_main(["worker", *options])

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Callable[[int, float], Any]]:
        """By the app's pool."""
        yield lambda number, seconds: self.app.tasks["work"].delay(number, seconds)


if __name__ == "__main__":
    main(OnCelery)
