"""The commands that every system has: `python -m bench.systems.NAME URL PROBES COMMAND [NUMBER...]`."""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from bench.systems.probes import Probes

CALLERS = 32
BULK = 1_000
GAP_SECONDS = (0.03, 0.08)
PATIENCE_SECONDS = 20.0
SPACED_SECONDS = 30.0
"""After so long no more are submitted: a system that is slow to begin has shown it by then."""

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Submit = Callable[[str, str], Awaitable[Any]]
SubmitMany = Callable[[str, list[str]], Awaitable[Any]]
SubmitNow = Callable[[str, str], Any]


class AwaitedSystem:
    """A system that is used with `await`. A subclass has `prepare`, `work` and `submitter`."""

    run: Run = staticmethod(asyncio.run)

    def __init__(self, url: str, probes: Probes) -> None:
        self.url = url
        self.probes = probes

    async def prepare(self) -> None:
        """Make the schema."""

    async def work(self) -> None:
        """Work until SIGTERM."""
        raise NotImplementedError

    def submitter(self) -> AbstractAsyncContextManager[tuple[Submit, SubmitMany]]:
        """What submits one task of a kind (`noop`, `probe`) with a payload, and what submits many at once."""
        raise NotImplementedError

    async def one(self, tasks: int, size: int) -> float:
        """Seconds to submit tasks, one durable submit after the other."""
        payload = "x" * size
        async with self.submitter() as (submit, _):
            await submit("noop", payload)
            begin = time.perf_counter()
            for _ in range(tasks):
                await submit("noop", payload)
            return time.perf_counter() - begin

    async def together(self, tasks: int, size: int) -> float:
        """Seconds to submit tasks by callers that each submit one at a time."""
        payload = "x" * size

        async def call(submit: Submit, times: int) -> None:
            for _ in range(times):
                await submit("noop", payload)

        async with self.submitter() as (submit, _):
            await asyncio.gather(*(call(submit, 1) for _ in range(CALLERS)))
            begin = time.perf_counter()
            await asyncio.gather(*(call(submit, tasks // CALLERS) for _ in range(CALLERS)))
            return time.perf_counter() - begin

    async def bulk(self, tasks: int, size: int) -> float:
        """Seconds to submit tasks, many in each call."""
        payload = "x" * size
        async with self.submitter() as (_, submit_many):
            begin = time.perf_counter()
            for first in range(0, tasks, BULK):
                await submit_many("noop", [payload] * min(BULK, tasks - first))
            return time.perf_counter() - begin

    async def probe(self, tasks: int) -> float:
        """Submit tasks one by one, each when the one before has begun a while ago; the handlers say when they began."""
        async with self.submitter() as (submit, _):
            before = self.probes.waited()
            async for _ in self.spaced(tasks, before):
                await submit("probe", str(time.monotonic_ns()))
        return 0.0

    async def spaced(self, tasks: int, before: int) -> AsyncIterator[int]:
        """Times to submit at, after a pause and once what came before has begun."""
        chance, enough = random.Random(tasks), time.monotonic() + SPACED_SECONDS
        for number in range(tasks):
            if time.monotonic() > enough:
                return
            yield number
            patience = time.monotonic() + PATIENCE_SECONDS
            while self.probes.waited() <= before + number and time.monotonic() < patience:
                await asyncio.sleep(0.001)
            await asyncio.sleep(chance.uniform(*GAP_SECONDS))


class PlainSystem:
    """A system that is used without `await`. A subclass has `prepare`, `work` and `submitter`."""

    def __init__(self, url: str, probes: Probes) -> None:
        self.url = url
        self.probes = probes

    def prepare(self) -> None:
        """Make the schema."""

    def work(self) -> None:
        """Work until SIGTERM."""
        raise NotImplementedError

    def submitter(self) -> AbstractContextManager[SubmitNow]:
        """What submits one task of a kind (`noop`, `probe`) with a payload."""
        raise NotImplementedError

    def one(self, tasks: int, size: int) -> float:
        """Seconds to submit tasks, one durable submit after the other."""
        payload = "x" * size
        with self.submitter() as submit:
            submit("noop", payload)
            begin = time.perf_counter()
            for _ in range(tasks):
                submit("noop", payload)
            return time.perf_counter() - begin

    def together(self, tasks: int, size: int) -> float:
        """Seconds to submit tasks by threads that each submit one at a time."""
        payload = "x" * size
        with self.submitter() as submit, ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(lambda _: submit("noop", payload), range(CALLERS)))
            begin = time.perf_counter()
            list(pool.map(lambda _: submit("noop", payload), range(tasks)))
            return time.perf_counter() - begin

    def probe(self, tasks: int) -> float:
        """Submit tasks one by one, each when the one before has begun a while ago; the handlers say when they began."""
        with self.submitter() as submit:
            before = self.probes.waited()
            for _ in self._spaced(tasks, before):
                submit("probe", str(time.monotonic_ns()))
        return 0.0

    def _spaced(self, tasks: int, before: int) -> Iterator[int]:
        chance, enough = random.Random(tasks), time.monotonic() + SPACED_SECONDS
        for number in range(tasks):
            if time.monotonic() > enough:
                return
            yield number
            patience = time.monotonic() + PATIENCE_SECONDS
            while self.probes.waited() <= before + number and time.monotonic() < patience:
                time.sleep(0.001)
            time.sleep(chance.uniform(*GAP_SECONDS))


def main(kind: type[AwaitedSystem] | type[PlainSystem]) -> None:
    """Do one command. A worker waits for a line, so that several workers can begin together."""
    url, folder, command, *words = sys.argv[1:]
    system = kind(url, Probes(folder))
    works = command.startswith("work")
    if works:
        print("ready", flush=True)
        sys.stdin.readline()
    arguments = [int(word) if word.isdigit() else word for word in words]
    outcome = getattr(system, command)(*arguments)
    if isinstance(system, AwaitedSystem):
        outcome = system.run(outcome)
    if not works:
        print(json.dumps(outcome))
