"""What handlers tell while they run: progress, phases, parts, checkpoints."""

import asyncio
import hashlib
import logging
from typing import Any

import pytest

from perdure.domain.attempt import Progress, Report
from perdure.domain.limits import PART_MAX_BYTES, SECOND_US
from perdure.domain.outcome import Failed, Stopped, Succeeded
from perdure.domain.task import Body
from perdure.errors import Conflict, Invalid, LeaseLost, Misuse, PerdureError, TooLarge
from perdure.store.ledger import Reported
from perdure.worker.context import Context
from perdure.worker.registry import Registry
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource


def progress_of(source: ScriptedSource) -> list[Progress]:
    return [each.progress for each in source.reports if each.progress is not None]


async def test_progress_is_gathered_and_the_latest_counts(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def count(*, ctx: Context) -> None:
        for done in range(1_000):
            ctx.progress(done + 1, 1_000, failed=3)
            await asyncio.sleep(0.001)

    registry.add("count", count)
    lease = source.offer("count")
    start_worker()
    await source.ended(lease)
    told = progress_of(source)
    assert 4 <= len(told) <= 7
    assert told[-1] == Progress(1_000, 1_000, failed=3)


async def test_what_was_told_last_arrives_before_the_outcome(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def quick(*, ctx: Context) -> None:
        ctx.phase("planning")
        ctx.phase("finalizing")
        ctx.progress(1, 1)

    registry.add("quick", quick)
    order: list[str] = []
    report, settle = source.report, source.settle

    async def noting_report(reports: Any) -> Any:
        order.append("report")
        return await report(reports)

    async def noting_settle(outcomes: Any) -> Any:
        order.append("settle")
        return await settle(outcomes)

    source.report, source.settle = noting_report, noting_settle  # type: ignore[method-assign]
    lease = source.offer("quick")
    start_worker()
    await source.ended(lease)
    assert order == ["report", "settle"]
    assert [each.phase for each in source.reports] == ["planning", "finalizing"]
    assert progress_of(source) == [Progress(1, 1)]


async def test_reports_of_many_handlers_travel_together(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def tell(*, ctx: Context) -> None:
        ctx.progress(1)
        await asyncio.sleep(1)

    registry.add("tell", tell)
    leases = [source.offer("tell") for _ in range(10)]
    start_worker()
    for lease in leases:
        await source.ended(lease)
    assert source.report_calls == 1
    assert len(source.reports) == 10


async def test_parts_are_numbered_and_acknowledged_one_by_one(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def slices(*, ctx: Context) -> list[bool]:
        first = await ctx.part({"n": 1})
        rest = await asyncio.gather(ctx.part(b"\x00\x01", key="raw"), ctx.part([2], final=True))
        return [first, *rest]

    registry.add("slices", slices)
    lease = source.offer("slices")
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b"[true,true,true]"))
    parts = [each.part for each in source.reports if each.part is not None]
    assert [(each.sequence, each.key, each.named, each.final) for each in parts] == [
        (1, "part-1", False, False),
        (2, "raw", True, False),
        (3, "part-3", False, True),
    ]
    assert parts[1].data == Body(b"\x00\x01", "binary")
    assert [each.sha256 for each in parts] == [hashlib.sha256(each.data.data).hexdigest() for each in parts]


async def test_a_refused_part_raises_in_the_handler_and_its_number_is_used_again(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    def answer(report: Report) -> Reported | Conflict:
        assert report.part is not None
        return Conflict("other data") if report.part.key == "b" else Reported(report.part.key == "a", None)

    async def slices(*, ctx: Context) -> list[Any]:
        known = await ctx.part(1, key="a")
        with pytest.raises(Conflict):
            await ctx.part(2, key="b")
        return [known, await ctx.part(3, key="c")]

    source.report_answer = answer
    registry.add("slices", slices)
    lease = source.offer("slices")
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b"[false,true]"))


async def test_a_part_without_a_lease_raises_and_stops_the_handler(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    raised: list[BaseException] = []

    async def slices(*, ctx: Context) -> None:
        await asyncio.sleep(1)
        try:
            await ctx.part(1)
        except LeaseLost as error:
            raised.append(error)
            assert ctx.cancelled
            with pytest.raises(LeaseLost):
                await ctx.checkpoint(1)
            raise

    registry.add("slices", slices)
    lease = source.offer("slices")
    worker = start_worker()
    await asyncio.sleep(0.9)
    source.lost.add(lease.hold.task_id)
    await asyncio.sleep(10)
    assert len(raised) == 1
    assert worker.held == 0
    assert source.outcomes == {}


async def test_an_answer_to_a_report_delivers_a_cancel(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def slices(*, ctx: Context) -> None:
        await ctx.part(1)
        await asyncio.sleep(1_000)

    source.report_answer = lambda report: Reported(False, 30 * SECOND_US)
    registry.add("slices", slices)
    lease = source.offer("slices")
    start_worker()
    assert await source.ended(lease, within=1) == Stopped()


async def test_what_is_too_large_or_wrong_is_refused_on_the_spot(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def careless(*, ctx: Context) -> None:
        with pytest.raises(TooLarge):
            await ctx.part(b"x" * (PART_MAX_BYTES + 1))
        with pytest.raises(TooLarge):
            await ctx.checkpoint("x" * 70_000)
        with pytest.raises(Invalid):
            await ctx.checkpoint(object())
        with pytest.raises(Invalid):
            ctx.progress(-1)
        with pytest.raises(Invalid):
            ctx.phase("thinking")
        with pytest.raises(Misuse):
            ctx.settle_within(None, 1)

    registry.add("careless", careless)
    lease = source.offer("careless")
    start_worker()
    assert isinstance(await source.ended(lease), Succeeded)
    assert source.reports == []


async def test_a_checkpoint_is_found_by_the_next_attempt(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def resume(*, ctx: Context) -> Any:
        found = ctx.checkpointed
        await ctx.checkpoint({"page": 8})
        return found

    registry.add("resume", resume)
    lease = source.offer("resume", checkpoint='{"page":7}')
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b'{"page":7}'))
    assert source.reports[0].checkpoint == '{"page":8}'


async def test_the_context_tells_about_its_task(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    async def tell(*, ctx: Context) -> dict[str, Any]:
        ctx.logger.warning("hello")
        await asyncio.sleep(10)
        return {
            "id": ctx.task_id,
            "fence": ctx.fence,
            "deadline": round(ctx.deadline),
            "lease": round(ctx.lease_seconds),
            "key": ctx.idempotency_key,
            "name": ctx.name,
            "stop": ctx.stop_reason,
        }

    registry.add("tell", tell)
    lease = source.offer("tell", deadline_us=100 * SECOND_US, name="step-1", generation=2)
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Succeeded)
    assert outcome.result.data == (
        b'{"id":"task-1","fence":1001,"deadline":90,"lease":50,"key":"task-1:2","name":"step-1","stop":null}'
    )
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert (record.name, record.task_id, record.attempt) == ("perdure.task.tell", "task-1", 1)  # type: ignore[attr-defined]


async def test_a_result_settled_within_a_transaction_is_the_result(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def transact(fail: bool, *, ctx: Context) -> str:
        ctx.settle_within("connection", {"rows": 3}, "three rows")
        if fail:
            raise RuntimeError("rolled back")
        return "something else"

    seen: list[Any] = []
    source.settle_within = lambda *given: seen.append(given)  # type: ignore[attr-defined]
    registry.add("transact", transact)
    good, bad = source.offer("transact", {"fail": False}), source.offer("transact", {"fail": True})
    start_worker()
    assert await source.ended(good) == Succeeded(Body(b'{"rows":3}'), "three rows")
    assert isinstance(await source.ended(bad), Failed)
    connection, hold, raw, summary = seen[0]
    assert (connection, hold, bytes(raw), summary) == ("connection", good.hold, b'{"rows":3}', "three rows")


async def test_a_source_that_breaks_on_reports_costs_no_more_than_the_reports(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    async def tell(*, ctx: Context) -> str:
        ctx.progress(1)
        await asyncio.sleep(1)
        with pytest.raises(PerdureError, match="could not be sent"):
            await ctx.checkpoint(1)
        return "done"

    async def broken(reports: Any) -> Any:
        raise ZeroDivisionError

    source.report = broken  # type: ignore[method-assign]
    registry.add("tell", tell)
    lease = source.offer("tell")
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b'"done"'))
    assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 2
