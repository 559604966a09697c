"""Celery on Redis: acknowledged after the work, results ignored, two processes forked before."""

from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery

from bench.systems.commands import PlainSystem, SubmitNow, main
from bench.systems.probes import Probes

PROCESSES = 2


class OnCelery(PlainSystem):
    """One app."""

    def __init__(self, url: str, probes: Probes) -> None:
        super().__init__(url, probes)
        self.app = Celery("bench", broker=url)
        self.app.conf.update(
            task_acks_late=True,
            task_reject_on_worker_lost=True,
            task_ignore_result=True,
            worker_hijack_root_logger=False,
            broker_connection_retry_on_startup=True,
        )

        @self.app.task(name="noop")
        def noop(payload: str) -> None:
            probes.tick()

        @self.app.task(name="probe")
        def probe(payload: str) -> None:
            probes.begun(int(payload))

    def work(self) -> None:
        """Work until SIGTERM."""
        options = [
            "--pool",
            "prefork",
            "--concurrency",
            str(PROCESSES),
            "--loglevel",
            "WARNING",
            "--hostname",
            "bench-%i@%h",
        ]
        self.app.worker_main(["worker", *options])

    @contextmanager
    def submitter(self) -> Iterator[SubmitNow]:
        """By the app's pool."""
        yield lambda kind, payload: self.app.tasks[kind].delay(payload)


if __name__ == "__main__":
    main(OnCelery)
