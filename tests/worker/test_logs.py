"""What handlers log: captured where it is logged, bounded, sent with what else they tell."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from perdure.domain.attempt import LogLine
from perdure.domain.limits import LOG_LAST_LINES_MAX, LOG_LINE_MAX_BYTES, LOG_LINES_MAX, LOG_MAX_BYTES, SECOND_US
from perdure.domain.outcome import Failed, Succeeded
from perdure.errors import Conflict
from perdure.worker.attempt_log import NOTICE
from perdure.worker.context import Context, SyncContext
from perdure.worker.registry import Registry
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource

elsewhere = logging.getLogger("shop.orders")


def lines_of(source: ScriptedSource, task: str = "task-1") -> list[LogLine]:
    return [line for report in source.reports if report.hold.task_id == task for line in report.logs]


def messages(source: ScriptedSource, task: str = "task-1") -> list[str]:
    return [line.message for line in lines_of(source, task)]


@pytest.fixture
async def run(source: ScriptedSource, registry: Registry, start_worker: StartWorker) -> Callable[..., Any]:
    """Runs one task of a handler to its outcome."""

    async def ran(handler: Callable[..., Any], **settings: Any) -> Any:
        registry.add("logs", handler)
        lease = source.offer("logs")
        start_worker(**settings)
        return await source.ended(lease)

    return ran


@pytest.fixture(autouse=True)
def only_warnings_are_written(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever tests before have set."""
    caplog.set_level(logging.WARNING, logger="perdure")


async def test_the_contexts_logger_is_kept_whatever_logging_writes(source: ScriptedSource, run: Any) -> None:
    async def handler(*, ctx: Context) -> None:
        assert not logging.getLogger("perdure.task.logs").isEnabledFor(logging.INFO)
        ctx.logger.debug("too fine")
        ctx.logger.info("%d of %s", 1, "many")
        ctx.logger.error("broken")

    await run(handler)
    said = [(each.sequence, each.level, each.message, each.dropped) for each in lines_of(source)]
    assert said == [(1, "info", "1 of many", 0), (2, "error", "broken", 0)]


async def test_other_loggers_are_kept_as_far_as_they_are_enabled(
    source: ScriptedSource, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "level", logging.INFO)

    async def helper() -> None:
        elsewhere.info("in a task of the handler")

    async def handler() -> None:
        elsewhere.debug("off")
        elsewhere.info("on")
        await asyncio.create_task(helper())

    await run(handler)
    assert messages(source) == ["on", "in a task of the handler"]


async def test_lines_of_handlers_at_once_do_not_mix(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def handler(name: str) -> None:
        for each in range(3):
            elsewhere.warning("%s %d", name, each)
            await asyncio.sleep(0.01)

    registry.add("logs", handler)
    leases = [source.offer("logs", {"name": name}) for name in ("a", "b")]
    start_worker()
    for lease in leases:
        await source.ended(lease)
    for lease, name in zip(leases, "ab", strict=True):
        assert messages(source, lease.hold.task_id) == [f"{name} {each}" for each in range(3)]


async def test_plain_functions_log_from_their_thread_and_ctx_logger_from_any(source: ScriptedSource, run: Any) -> None:
    def handler(*, ctx: SyncContext) -> None:
        elsewhere.warning("from the handler's thread")
        ctx.logger.info("by its context")
        own = threading.Thread(target=lambda: (ctx.logger.warning("from a thread of its own"), elsewhere.error("lost")))
        own.start()
        own.join()

    await run(handler)
    assert messages(source) == ["from the handler's thread", "by its context", "from a thread of its own"]


async def test_a_line_that_goes_to_both_is_kept_once_and_tells_where_it_was_logged(
    source: ScriptedSource, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(*, ctx: Context) -> None:
        ctx.logger.warning("once", extra={"order": 7})

    with caplog.at_level(logging.WARNING, "perdure.task"):
        await run(handler)
    [record] = [each for each in caplog.records if each.name == "perdure.task.logs"]
    assert messages(source) == ["once"]
    assert (record.funcName, record.attempt, record.order) == ("handler", 1, 7)  # type: ignore[attr-defined]


async def test_tracebacks_are_part_of_the_message(source: ScriptedSource, run: Any) -> None:
    async def handler(*, ctx: Context) -> None:
        try:
            raise ValueError("the cause")
        except ValueError as error:
            elsewhere.exception("first")
            ctx.logger.info("second", exc_info=True)
            ctx.logger.info("third", exc_info=error)

    await run(handler)
    for line, begins in zip(lines_of(source), ("first", "second", "third"), strict=True):
        assert line.message.startswith(f"{begins}\nTraceback (most recent call last)")
        assert line.message.endswith("ValueError: the cause")


async def test_arguments_that_do_not_fit_are_no_reason_to_fail(source: ScriptedSource, run: Any) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no text")

        __repr__ = __str__

    async def handler(*, ctx: Context) -> str:
        ctx.logger.info("%d", "not a number")
        ctx.logger.info("%s", Unprintable())
        ctx.logger.info("nul \x00 and half \ud800")
        return "done"

    assert isinstance(await run(handler), Succeeded)
    assert messages(source) == ["%d (its arguments do not fit: ('not a number',))", "nul ? and half ?"]


async def test_what_perdure_logs_itself_is_not_the_tasks(source: ScriptedSource, run: Any) -> None:
    async def handler() -> None:
        logging.getLogger("perdure.worker").error("of the worker")
        logging.getLogger("perdure_like").error("of a program")

    await run(handler)
    assert messages(source) == ["of a program"]


@pytest.mark.parametrize(
    ("least", "kept"), [("debug", ["d", "w", "c"]), ("warning", ["w", "c"]), ("critical", ["c"]), ("off", [])]
)
async def test_the_least_level_is_a_setting(source: ScriptedSource, run: Any, least: str, kept: list[str]) -> None:
    async def handler(*, ctx: Context) -> None:
        ctx.logger.debug("d")
        ctx.logger.warning("w")
        ctx.logger.critical("c")

    await run(handler, task_logs=least)
    assert messages(source) == kept


async def test_lines_are_gathered_and_say_how_long_ago_they_were_logged(source: ScriptedSource, run: Any) -> None:
    async def handler(*, ctx: Context) -> None:
        for each in range(100):
            ctx.logger.info("line %d", each)
            await asyncio.sleep(0.01)

    await run(handler)
    assert source.report_calls <= 7
    assert messages(source) == [f"line {each}" for each in range(100)]
    first = source.reports[0].logs
    assert first[0].ago_us - first[-1].ago_us == pytest.approx((len(first) - 1) * 10_000, abs=5)


async def test_the_last_lines_arrive_before_the_outcome(source: ScriptedSource, run: Any) -> None:
    order: list[str] = []
    report, settle = source.report, source.settle

    async def noting_report(reports: Any) -> Any:
        order.append("report")
        return await report(reports)

    async def noting_settle(outcomes: Any) -> Any:
        order.append("settle")
        return await settle(outcomes)

    source.report, source.settle = noting_report, noting_settle  # type: ignore[method-assign]

    async def handler(*, ctx: Context) -> None:
        ctx.logger.info("nearly there")
        raise RuntimeError("no")

    assert isinstance(await run(handler), Failed)
    assert order == ["report", "settle"]
    assert messages(source) == ["nearly there"]


async def test_a_factory_of_the_programs_own_stays_and_sees_what_it_saw(source: ScriptedSource, run: Any) -> None:
    before = logging.getLogRecordFactory()
    made: list[logging.LogRecord] = []

    def own(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made.append(before(*args, **kwargs))
        return made[-1]

    logging.setLogRecordFactory(own)

    async def handler() -> None:
        elsewhere.warning("once")

    try:
        await run(handler)
    finally:
        logging.setLogRecordFactory(before)
    assert messages(source) == ["once"]
    [record] = [each for each in made if each.name == elsewhere.name]
    assert not [name for name in vars(record) if "perdure" in name]


# Bounds


async def test_of_a_chatty_handler_the_beginning_and_the_end_are_kept_and_the_rest_is_counted(
    source: ScriptedSource, run: Any
) -> None:
    total = 50_000

    async def handler(*, ctx: Context) -> None:
        for each in range(total):
            ctx.logger.info("%d", each)

    await run(handler)
    lines = lines_of(source)
    first = LOG_LINES_MAX - LOG_LAST_LINES_MAX - 1
    assert [each.message for each in lines[:first]] == [str(each) for each in range(first)]
    assert (lines[first].message, lines[first].level) == (NOTICE, "warning")
    last = lines[first + 1 :]
    assert [each.message for each in last] == [str(each) for each in range(total - LOG_LAST_LINES_MAX, total)]
    assert [each.dropped for each in lines if each.dropped] == [total - first - LOG_LAST_LINES_MAX]
    assert last[0].dropped
    assert [each.sequence for each in lines] == list(range(1, LOG_LINES_MAX + 1))


async def test_long_lines_are_cut_and_many_of_them_end_the_beginning_early(source: ScriptedSource, run: Any) -> None:
    async def handler(*, ctx: Context) -> None:
        for _ in range(200):
            ctx.logger.info("é" * LOG_LINE_MAX_BYTES)

    await run(handler)
    lines = lines_of(source)
    sizes = [len(each.message.encode()) for each in lines]
    assert max(sizes) <= LOG_LINE_MAX_BYTES
    assert LOG_MAX_BYTES * 0.9 < sum(sizes) <= LOG_MAX_BYTES
    assert lines[0].message.endswith("(cut)")
    assert len(lines) - 1 + sum(each.dropped for each in lines) == 200


async def test_what_is_logged_after_the_end_goes_nowhere(source: ScriptedSource, run: Any) -> None:
    loggers: list[Any] = []

    async def handler(*, ctx: Context) -> None:
        loggers.append(ctx.logger)
        ctx.logger.info("in time")

    await run(handler)
    loggers[0].info("too late")
    await asyncio.sleep(1)
    assert messages(source) == ["in time"]


# When the source is away, or says no


async def test_lines_wait_for_a_source_that_is_away_and_keep_their_instants(source: ScriptedSource, run: Any) -> None:
    async def handler(*, ctx: Context) -> None:
        source.away = True
        ctx.logger.info("while away")
        await asyncio.sleep(5)
        source.away = False

    await run(handler)
    [line] = lines_of(source)
    assert 4 * SECOND_US < line.ago_us < 6 * SECOND_US


async def test_logs_that_are_refused_do_not_touch_the_outcome(source: ScriptedSource, run: Any) -> None:
    source.report_answer = lambda report: Conflict("not now")

    async def handler(*, ctx: Context) -> str:
        ctx.logger.info("refused")
        await asyncio.sleep(1)
        return "done"

    assert isinstance(await run(handler), Succeeded)


async def test_an_attempt_that_lost_its_lease_sends_no_more_lines(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    stopped = asyncio.Event()

    async def handler(*, ctx: Context) -> None:
        source.lost.add(ctx.task_id)
        ctx.logger.info("one")
        try:
            await asyncio.sleep(60)
        finally:
            ctx.logger.info("two")
            stopped.set()

    registry.add("logs", handler)
    source.offer("logs")
    start_worker()
    await asyncio.wait_for(stopped.wait(), 30)
    await asyncio.sleep(1)
    assert lines_of(source) == []
    assert source.report_calls == 1
