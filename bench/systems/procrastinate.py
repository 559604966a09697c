"""Procrastinate on PostgreSQL by psycopg, 20 tasks at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from procrastinate import App, PsycopgConnector

from bench.systems.commands import AwaitedSystem, Submit, SubmitMany, main

CONCURRENCY = 20
POOL = 12


class Procrastinate(AwaitedSystem):
    """An app with a pool of connections."""

    def _app(self) -> App:
        app = App(connector=PsycopgConnector(conninfo=self.url, min_size=1, max_size=POOL))

        @app.task(name="noop")
        async def noop(payload: str) -> None:
            self.probes.tick()

        @app.task(name="probe")
        async def probe(payload: str) -> None:
            self.probes.begun(int(payload))

        return app

    async def prepare(self) -> None:
        """Make the schema."""
        app = self._app()
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def work(self) -> None:
        """Work until SIGTERM."""
        app = self._app()
        async with app.open_async():
            await app.run_worker_async(concurrency=CONCURRENCY)

    @asynccontextmanager
    async def submitter(self) -> AsyncIterator[tuple[Submit, SubmitMany]]:
        """By the app's pool."""
        app = self._app()
        async with app.open_async():

            async def submit(kind: str, payload: str) -> None:
                await app.tasks[kind].defer_async(payload=payload)

            async def submit_many(kind: str, payloads: list[str]) -> None:
                await app.tasks[kind].batch_defer_async(*({"payload": each} for each in payloads))

            yield submit, submit_many


if __name__ == "__main__":
    main(Procrastinate)
