"""What a worker says in its log: its start, failures, bad ends, its own end; nothing of what goes well."""

import asyncio
import logging

import pytest

from perdure.domain.states import TaskState
from perdure.store.ledger import SettleAnswer, Settled
from perdure.worker.registry import Registry
from perdure.worker.verdicts import RetryAfter
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "perdure.worker")
    return caplog


def lines(told: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(each.levelname, each.getMessage()) for each in told.records if each.name == "perdure.worker"]


def settled_as(source: ScriptedSource, monkeypatch: pytest.MonkeyPatch, state: TaskState) -> None:
    given = source.settle

    async def settle(outcomes):  # type: ignore[no-untyped-def]
        await given(outcomes)
        return [Settled(SettleAnswer.APPLIED, state)] * len(outcomes)

    monkeypatch.setattr(source, "settle", settle)


async def test_start_and_end_are_told_and_success_is_not(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, told: pytest.LogCaptureFixture
) -> None:
    async def fine() -> int:
        return 1

    registry.add("fine", fine)
    worker = start_worker(concurrency=3)
    await source.ended(source.offer("fine"))
    worker.drain()
    await worker.task  # type: ignore[attr-defined]
    assert lines(told) == [
        (
            "INFO",
            f"worker {worker.id} (w) works for a source without a name: concurrency 3, queues default, kinds fine",
        ),
        ("INFO", f"worker {worker.id}: drained; 0 handed back"),
    ]


@pytest.mark.parametrize(
    ("error", "state", "level", "ending"),
    [
        (ValueError("no"), TaskState.QUEUED, "WARNING", "ValueError: no; it is tried again after its backoff"),
        (RetryAfter(7, "busy"), TaskState.QUEUED, "WARNING", "busy; it is tried again in 7 s"),
        (ValueError("no"), TaskState.DEAD_LETTERED, "ERROR", "ValueError: no; the task is dead_lettered"),
    ],
    ids=["retried", "retried-when-asked", "the-last-one"],
)
async def test_a_failed_attempt_is_told_with_what_becomes_of_the_task(
    source: ScriptedSource,
    registry: Registry,
    start_worker: StartWorker,
    told: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    state: TaskState,
    level: str,
    ending: str,
) -> None:
    async def fail() -> None:
        raise error

    registry.add("fail", fail)
    settled_as(source, monkeypatch, state)
    worker = start_worker()
    await source.ended(source.offer("fail", attempt=2))
    worker.drain()
    await worker.task  # type: ignore[attr-defined]
    [(found, line)] = lines(told)[1:-1]
    assert found == level
    assert line.startswith("attempt 2 of 3 of task task-1 (fail) failed: ")
    assert line.endswith(ending)


async def test_a_source_that_does_not_answer_is_told_with_words(
    source: ScriptedSource,
    registry: Registry,
    start_worker: StartWorker,
    told: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def heartbeat(worker_id: str, capacity: int):  # type: ignore[no-untyped-def]
        await asyncio.Event().wait()

    monkeypatch.setattr(source, "heartbeat", heartbeat)
    start_worker(heartbeat=5.0)
    await asyncio.sleep(12)
    assert "no answer within 5 s" in next(line for level, line in lines(told) if level == "WARNING")
