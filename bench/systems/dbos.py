"""DBOS on PostgreSQL: workflows in a queue without a limit of its own."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbos import DBOS, DBOSClient, DBOSConfig

from bench.systems.commands import PlainSystem, SubmitNow, main

QUEUE = "bench"
POLL_SECONDS = 1.0
APP_VERSION = "1"
PREPARE_SECONDS = 60


class Dbos(PlainSystem):
    """A client that enqueues, and workers that have registered the queue."""

    def _address(self) -> str:
        return self.url.replace("postgresql://", "postgresql+psycopg://")

    def prepare(self) -> None:
        """Make the schema, as the first launch does, and end that process: its threads are in the way of an exit."""
        command = [sys.executable, "-m", "bench.systems.dbos", self.url, str(self.probes.folder), "launch"]
        subprocess.run(command, check=True, timeout=PREPARE_SECONDS, stdout=sys.stderr)

    def launch(self) -> None:
        """Make the schema."""
        DBOS(config=self._config())
        DBOS.launch()
        DBOS.destroy()

    def _config(self) -> DBOSConfig:
        return DBOSConfig(
            name="bench", system_database_url=self._address(), application_version=APP_VERSION, log_level="WARNING"
        )

    def work(self) -> None:
        """Work until SIGTERM."""
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())

        @DBOS.workflow(name="noop")
        def noop(payload: str) -> None:
            self.probes.tick()

        @DBOS.workflow(name="probe")
        def probe(payload: str) -> None:
            self.probes.begun(int(payload))

        DBOS(config=self._config())
        DBOS.launch()
        DBOS.register_queue(QUEUE, polling_interval_sec=POLL_SECONDS)
        ended.wait()

    @contextmanager
    def submitter(self) -> Iterator[SubmitNow]:
        """By a client with a pool."""
        client = DBOSClient(system_database_url=self._address())

        def submit(kind: str, payload: str) -> None:
            client.enqueue({"queue_name": QUEUE, "workflow_name": kind, "app_version": APP_VERSION}, payload)

        yield submit
        client.destroy()


if __name__ == "__main__":
    main(Dbos)
