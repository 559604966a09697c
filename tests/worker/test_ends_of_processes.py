"""What would end a process ends an attempt when a handler raises it, and nothing more."""

import asyncio

import pytest

from perdure.domain.outcome import Failed, Succeeded
from perdure.worker.registry import Registry
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration("x"), GeneratorExit()]
)
@pytest.mark.parametrize("in_thread", [False, True], ids=["async", "thread"])
async def test_no_exception_gets_past_the_executor(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, error: BaseException, in_thread: bool
) -> None:
    async def broken() -> None:
        raise error

    def broken_plainly() -> None:
        raise error

    registry.add("broken", broken_plainly if in_thread else broken)
    lease = source.offer("broken")
    start_worker()
    assert isinstance(await source.ended(lease), Failed)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_a_worker_goes_on_after_a_handler_that_waited_and_then_wanted_to_end_the_process(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, error: BaseException
) -> None:
    async def broken() -> None:
        await asyncio.sleep(0.1)
        raise error

    async def fine() -> str:
        return "fine"

    registry.add("broken", broken)
    registry.add("fine", fine)
    start_worker(concurrency=1)
    outcome = await source.ended(source.offer("broken"))
    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.permanent) == (type(error).__name__, False)
    assert isinstance(await source.ended(source.offer("fine")), Succeeded)
