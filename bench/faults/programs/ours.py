"""perdure: a lease of ten seconds, three losses; keys make a submit that is asked again the same one."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import perdure
from bench.faults.notes import Notes
from bench.faults.programs.commands import AT_ONCE, LEASE_SECONDS, LOSSES_MAX, main, run


class Ours:
    """An app with one kind."""

    def __init__(self, url: str, notes: Notes) -> None:
        self.app = perdure.App(url)

        @self.app.task("work", lease=LEASE_SECONDS, max_losses=LOSSES_MAX)
        async def work(number: int, seconds: float) -> None:
            await run(notes, number, seconds)

    async def prepare(self) -> None:
        """Make the schema: the first use does."""
        async with self.app:
            pass

    async def work(self) -> None:
        """Work until ended."""
        await self.app.run(concurrency=AT_ONCE)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Callable[[int, float], Any]]:
        """With the number as the idempotency key."""
        async with self.app:
            yield lambda number, seconds: self.app.submit(
                "work", number=number, seconds=seconds, idempotency_key=f"task-{number}"
            )


if __name__ == "__main__":
    main(Ours)
