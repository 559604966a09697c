"""What becomes of a task whose handler is left to itself."""

import asyncio
import contextvars
import json
import threading
from typing import Any

import pytest

from perdure.domain.outcome import (
    Failed,
    GaveUp,
    NotStarted,
    Outcome,
    Snoozed,
    Succeeded,
    SucceededPartly,
)
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.store.ledger import ParentResult
from perdure.worker.context import Context, SyncContext
from perdure.worker.registry import Registry
from perdure.worker.verdicts import Cancel, Fail, Partly, RetryAfter, Snooze
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import ScriptedSource


async def test_a_value_becomes_the_result(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def double(number: int) -> dict[str, int]:
        await asyncio.sleep(5)
        return {"doubled": number * 2}

    registry.add("double", double)
    lease = source.offer("double", {"number": 21})
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b'{"doubled":42}'))


async def test_a_plain_function_runs_in_a_thread(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    def where() -> str:
        return threading.current_thread().name

    registry.add("where", where)
    lease = source.offer("where")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Succeeded)
    assert json.loads(outcome.result.data).startswith("perdure-handler-")


@pytest.mark.parametrize("raised", [False, True], ids=["returned", "raised"])
@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Snooze(30), Snoozed(30_000_000)),
        (Cancel("not wanted"), GaveUp("not wanted")),
        (Partly([1], "one of two"), SucceededPartly(Body(b"[1]"), "one of two")),
    ],
    ids=["snooze", "cancel", "partly"],
)
async def test_a_verdict_means_the_same_returned_and_raised(
    source: ScriptedSource,
    registry: Registry,
    start_worker: StartWorker,
    verdict: Any,
    expected: Outcome,
    raised: bool,
) -> None:
    async def decide() -> Any:
        if raised:
            raise verdict
        return verdict

    registry.add("decide", decide)
    lease = source.offer("decide")
    start_worker()
    assert await source.ended(lease) == expected


async def test_fail_and_retry_after_are_failures_with_their_terms(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def give_up() -> None:
        raise Fail("no such customer")

    async def later() -> RetryAfter:
        return RetryAfter(90, "rate limited")

    registry.add("give_up", give_up)
    registry.add("later", later)
    first, second = source.offer("give_up"), source.offer("later")
    start_worker()
    gave_up, wait = await source.ended(first), await source.ended(second)
    assert isinstance(gave_up, Failed)
    assert (gave_up.permanent, gave_up.error.type, gave_up.error.message) == (True, "Fail", "no such customer")
    assert isinstance(wait, Failed)
    assert (wait.permanent, wait.retry_after_us, wait.error.message) == (False, 90_000_000, "rate limited")


async def test_an_error_is_kept_with_the_handlers_part_of_its_traceback(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def broken() -> None:
        await asyncio.sleep(1)
        raise LookupError("no page 7\x00")

    registry.add("broken", broken)
    lease = source.offer("broken")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert outcome.error.type == "LookupError"
    assert outcome.error.message == "no page 7\\x00"
    assert "in broken" in outcome.error.traceback
    assert "stepping.py" not in outcome.error.traceback
    assert not outcome.permanent


async def test_a_giant_error_is_cut_to_its_limit(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    def recurse(depth: int) -> None:
        if depth:
            recurse(depth - 1)
        raise ValueError("x" * 100_000)

    async def broken() -> None:
        recurse(300)

    registry.add("broken", broken)
    lease = source.offer("broken")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    error = outcome.error
    assert len(error.type.encode()) + len(error.message.encode()) + len(error.traceback.encode()) <= 16 * 1024
    assert "(cut)" in error.message


@pytest.mark.parametrize(
    ("retry_on", "give_up_on", "permanent"),
    [
        ((), (), False),
        ((), (LookupError,), True),
        ((KeyError,), (), False),
        ((OSError,), (), True),
        ((KeyError,), (LookupError,), True),
    ],
)
async def test_errors_are_judged_by_the_kinds_type_lists(
    source: ScriptedSource,
    registry: Registry,
    start_worker: StartWorker,
    retry_on: tuple[type[BaseException], ...],
    give_up_on: tuple[type[BaseException], ...],
    permanent: bool,
) -> None:
    async def broken() -> None:
        raise KeyError("k")

    registry.add("broken", broken, retry_on=retry_on, give_up_on=give_up_on)
    lease = source.offer("broken")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert outcome.permanent is permanent


async def test_a_payload_that_does_not_fit_fails_for_good_with_the_field_named(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def double(number: int) -> int:
        return number * 2

    registry.add("double", double)
    lease = source.offer("double", {"number": "many"})
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert (outcome.permanent, outcome.reason) == (True, "bad_payload")
    assert outcome.error.message.startswith("number: ")


@pytest.mark.parametrize("value", [object(), "x" * (256 * 1024), "\ud800"], ids=["unwritable", "too large", "no text"])
async def test_a_result_that_cannot_be_kept_fails_for_good(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, value: Any
) -> None:
    async def give() -> Any:
        return value

    registry.add("give", give)
    lease = source.offer("give")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert (outcome.permanent, outcome.reason) == (True, "bad_result")


async def test_a_ttl_that_passed_while_it_waited_here_keeps_the_handler_from_starting(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    calls: list[int] = []

    async def slow(number: int) -> None:
        calls.append(number)
        await asyncio.sleep(4)

    registry.add("slow", slow)
    start_worker(concurrency=1, prefetch=1)
    await warm_up(source, registry)
    first = source.offer("slow", {"number": 1})
    second = source.offer("slow", {"number": 2}, start_within_us=3_000_000)
    await source.ended(first)
    assert await source.ended(second) == NotStarted()
    assert calls == [1]


async def test_results_of_parents_reach_fields_and_context(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def merge(left: list[int], *, ctx: Context) -> dict[str, Any]:
        return {"left": left, "parents": dict(ctx.parents), "states": dict(ctx.parent_states)}

    registry.add("merge", merge)
    lease = source.offer("merge", {}, parents=2, options='{"bindings":{"left":"a"}}')
    source.parents[lease.hold.task_id] = {
        "a": ParentResult(TaskState.SUCCEEDED, Body(b"[1,2]")),
        "b": ParentResult(TaskState.FAILED, None),
    }
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Succeeded)
    assert json.loads(outcome.result.data) == {
        "left": [1, 2],
        "parents": {"a": [1, 2]},
        "states": {"a": "succeeded", "b": "failed"},
    }


async def test_an_older_kind_runs_through_its_upcaster(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def render(month: str, pages: int) -> str:
        return f"{month}/{pages}"

    registry.add("render.v2", render, upcasters={"render.v1": lambda old: {"month": old["m"], "pages": 1}})
    old, new = source.offer("render.v1", {"m": "may"}), source.offer("render.v2", {"month": "june", "pages": 2})
    broken = source.offer("render.v1", {})
    worker = start_worker()
    assert await source.ended(old) == Succeeded(Body(b'"may/1"'))
    assert await source.ended(new) == Succeeded(Body(b'"june/2"'))
    outcome = await source.ended(broken)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "bad_payload"
    assert worker.info.kinds == ("render.v1", "render.v2")


async def test_what_a_handler_sets_in_its_context_stays_with_it(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="clean")

    async def leave_a_mark(wait: bool) -> list[str]:
        before = mark.get()
        mark.set("dirty")
        if wait:
            await asyncio.sleep(1)
        return [before, mark.get()]

    registry.add("mark", leave_a_mark)
    leases = [source.offer("mark", {"wait": wait}) for wait in (False, False, True, False, True, False)]
    start_worker(concurrency=1, prefetch=1)
    for lease in leases:
        assert await source.ended(lease) == Succeeded(Body(b'["clean","dirty"]'))


async def test_time_outs_and_groups_inside_handlers_work_as_in_any_task(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def careful() -> list[str]:
        seen: list[str] = []
        try:
            async with asyncio.timeout(2):
                await asyncio.sleep(100)
        except TimeoutError:
            seen.append("timed out")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(50))
                group.create_task(fail())
        except* ValueError:
            seen.append("group failed")
        return seen

    async def fail() -> None:
        raise ValueError

    registry.add("careful", careful)
    leases = [source.offer("careful") for _ in range(4)]
    start_worker(concurrency=2)
    for lease in leases:
        assert await source.ended(lease) == Succeeded(Body(b'["timed out","group failed"]'))


async def test_a_handler_that_cancels_itself_spoils_nothing_for_the_next(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def self_harm() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def innocent() -> str:
        await asyncio.sleep(1)
        return "fine"

    registry.add("self_harm", self_harm)
    registry.add("innocent", innocent)
    leases = [source.offer(kind) for kind in ("self_harm", "innocent", "self_harm", "innocent")]
    worker = start_worker(concurrency=1)
    assert await source.ended(leases[1]) == Succeeded(Body(b'"fine"'))
    assert await source.ended(leases[3]) == Succeeded(Body(b'"fine"'))
    assert worker.held == 0


async def test_a_plain_function_may_not_return_a_coroutine(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def inner() -> None:
        return None

    def wrapper() -> Any:
        return inner()

    registry.add("wrapper", wrapper)
    lease = source.offer("wrapper")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert "async function" in outcome.error.message


async def test_thread_handlers_see_their_task(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    def tell(*, ctx: SyncContext) -> list[Any]:
        ctx.progress(1, 2)
        ctx.phase("executing")
        ctx.part({"piece": 1}, key="p")
        ctx.checkpoint({"at": 7})
        return [ctx.task_id, ctx.attempt, ctx.fence, ctx.idempotency_key, ctx.cancelled]

    registry.add("tell", tell)
    lease = source.offer("tell", attempt=2, generation=3)
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Succeeded)
    assert json.loads(outcome.result.data) == ["task-1", 2, 1_001, "task-1:3", False]
    assert [each.part.key for each in source.reports if each.part is not None] == ["p"]
    assert [each.checkpoint for each in source.reports if each.checkpoint is not None] == ['{"at":7}']
    assert [each.phase for each in source.reports if each.phase is not None] == ["executing"]
