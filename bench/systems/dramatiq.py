"""Dramatiq on Redis: one process of 8 threads."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import dramatiq
from dramatiq import cli
from dramatiq.brokers.redis import RedisBroker

from bench.systems.commands import PlainSystem, SubmitNow, main
from bench.systems.probes import Probes

THREADS = 8
URL, FOLDER = "BENCH_URL", "BENCH_PROBES"


class OnDramatiq(PlainSystem):
    """One broker."""

    def __init__(self, url: str, probes: Probes) -> None:
        super().__init__(url, probes)
        self.broker = RedisBroker(url=url)
        dramatiq.set_broker(self.broker)

        @dramatiq.actor
        def noop(payload: str) -> None:
            probes.tick()

        @dramatiq.actor
        def probe(payload: str) -> None:
            probes.begun(int(payload))

        self.actors = {"noop": noop, "probe": probe}

    def work(self) -> None:
        """Work until SIGTERM. The worker's processes import this module, and find the broker by the environment."""
        os.environ |= {URL: self.url, FOLDER: str(self.probes.folder)}
        sys.argv = ["dramatiq", "bench.systems.dramatiq:broker", "--processes", "1", "--threads", str(THREADS)]
        sys.exit(cli.main())

    @contextmanager
    def submitter(self) -> Iterator[SubmitNow]:
        """By the broker's pool."""
        yield lambda kind, payload: self.actors[kind].send(payload)


if __name__ == "__main__":
    main(OnDramatiq)
elif URL in os.environ:
    broker = OnDramatiq(os.environ[URL], Probes(os.environ[FOLDER])).broker
