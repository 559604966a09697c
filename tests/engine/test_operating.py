"""What operators do: cancel, redrive, discard and purge; queues; workers."""

from typing import Any

import msgspec
import pytest

from engine.making import DONE, KIND, ME, Bench
from perdure.domain import limits
from perdure.domain.outcome import Failed, Failure, Succeeded
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.engine.requests import JobRequest, JobTaskRequest, KindDefinition, Principal
from perdure.errors import Conflict, Invalid, Malformed, NotFound, Overloaded, StoreBusy
from perdure.store.definitions import Definition
from perdure.store.ledger import CancelAnswer, Swept, WorkerInfo, WorkerOrder
from perdure.store.wakeups import Topic

UNKNOWN = "0198c5a4-7f3e-7abc-8def-0123456789ab"
FATAL = Failed(Failure("ValueError", "fatal"), permanent=True)
OTHERS = Principal("them", "other")


async def dead_letter(bench: Bench) -> str:
    await bench.worker()
    task_id = await bench.submit(payload={"x": 1})
    assert (await bench.settle(await bench.lease(), FATAL)).state == TaskState.DEAD_LETTERED
    return task_id


async def test_cancels_are_answered_one_by_one(bench: Bench) -> None:
    await bench.worker()
    held, waiting = await bench.submit(priority=9), await bench.submit()
    await bench.lease()
    answers = await bench.engine.cancel([held, waiting, UNKNOWN], ME, text="enough", note="for me")
    assert [each.answer for each in answers] == [
        CancelAnswer.CANCELLING,
        CancelAnswer.CANCELLED,
        CancelAnswer.NOT_FOUND,
    ]
    view = await bench.view(held)
    assert view.cancel is not None
    assert (view.cancel.actor, view.cancel.text, view.cancel.note) == ("me", "enough", "for me")


async def test_nobody_cancels_another_organizations_task(bench: Bench) -> None:
    task_id = await bench.submit()
    (answer,) = await bench.engine.cancel([task_id], OTHERS)
    assert answer.answer is CancelAnswer.NOT_FOUND
    assert (await bench.view(task_id)).state == TaskState.QUEUED


async def test_bad_ids_and_long_texts_cancel_nothing(bench: Bench) -> None:
    task_id = await bench.submit()
    with pytest.raises(Malformed):
        await bench.engine.cancel([task_id, "nonsense"], ME)
    with pytest.raises(Invalid, match="text"):
        await bench.engine.cancel([task_id], ME, text="x" * (limits.REASON_TEXT_MAX_CHARS + 1))
    with pytest.raises(Invalid, match="note"):
        await bench.engine.cancel([task_id], ME, note="nul \x00")
    assert await bench.engine.cancel([], ME) == []
    assert (await bench.view(task_id)).state == TaskState.QUEUED


async def test_a_jobs_cancel_reaches_its_tasks(bench: Bench) -> None:
    tasks = [JobTaskRequest(kind=KIND, name=f"t{n}") for n in range(5)]
    job = await bench.engine.submit_job(JobRequest(name="j", tasks=tasks), ME)
    assert await bench.engine.cancel_job(job.id, ME, "enough")
    async with bench.engine.duty_runner():
        ended = await bench.engine.wait_ended(ME.organization, list(job.task_ids.values()), 10.0)
    assert {each.state for each in ended} == {TaskState.CANCELLED}
    assert not await bench.engine.cancel_job(job.id, ME)
    with pytest.raises(NotFound):
        await bench.engine.cancel_job(job.id, OTHERS)
    with pytest.raises(Malformed, match="job"):
        await bench.engine.cancel_job("nonsense", ME)


async def test_no_task_of_a_job_is_claimed_once_its_cancel_was_answered(bench: Bench) -> None:
    await bench.worker()
    nodes = [JobTaskRequest(kind=KIND, name=f"t{n}") for n in range(5)]
    job = await bench.engine.submit_job(JobRequest(name="j", tasks=nodes), ME)
    held = await bench.lease()
    other = await bench.submit()
    assert await bench.engine.cancel_job(job.id, ME, "enough")
    states = [(await bench.view(each)).state for each in job.task_ids.values()]
    assert sorted(states) == sorted([TaskState.CANCELLING] + [TaskState.CANCELLED] * 4)
    assert (await bench.view(held.hold.task_id)).state == TaskState.CANCELLING
    assert [each.hold.task_id for each in await bench.engine.claim("w", 10)] == [other]


async def test_a_cancelled_job_stays_cancelled_when_the_store_fails_after_the_request(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await bench.engine.submit_job(JobRequest(name="j", tasks=[JobTaskRequest(kind=KIND, name="t")]), ME)
    cascade = bench.store.ledger.cascade

    async def away(*asked: Any) -> Swept:
        raise StoreBusy("another process has the lock")

    monkeypatch.setattr(bench.store.ledger, "cascade", away)
    assert await bench.engine.cancel_job(job.id, ME)
    await cascade(10)
    assert (await bench.view(job.task_ids["t"])).state == TaskState.CANCELLED


async def test_a_redriven_dead_letter_runs_again_under_its_id(bench: Bench) -> None:
    task_id = await dead_letter(bench)
    assert await bench.engine.redrive([task_id], ME, payload={"x": 2}) == [task_id]
    lease = await bench.lease()
    assert (lease.hold.task_id, lease.generation, lease.attempt) == (task_id, 2, 1)
    assert msgspec.json.decode(lease.payload.data) == {"x": 2}
    await bench.settle(lease, DONE)
    assert (await bench.view(task_id)).state == TaskState.SUCCEEDED


async def test_what_cannot_be_redriven_says_why(bench: Bench) -> None:
    task_id = await bench.submit()
    waiting, unknown = await bench.engine.redrive([task_id, UNKNOWN], ME)
    assert isinstance(waiting, Conflict)
    assert isinstance(unknown, NotFound)
    with pytest.raises(Invalid):
        await bench.engine.redrive([task_id], ME, payload={"x": float("nan")})


TAKES_A_NUMBER = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {}}, "required": ["x"]}


async def test_a_dead_letter_takes_no_payload_that_a_submit_of_its_kind_would_not(bench: Bench) -> None:
    task_id = await dead_letter(bench)
    await bench.engine.declare([KindDefinition(kind=KIND, schema=TAKES_A_NUMBER)], ME)
    for payload, field in (({"x": "one"}, "payload.x"), ({}, "payload"), ([], "payload")):
        before = await bench.view(task_id)
        [refused] = await bench.engine.redrive([task_id], ME, payload=payload)
        assert isinstance(refused, Invalid)
        assert refused.fields["field"] == field
        assert refused.message == (await bench.refusal(payload=payload)).message
        assert await bench.view(task_id) == before
    assert await bench.engine.redrive([task_id], ME, payload={"x": 2}) == [task_id]
    assert msgspec.json.decode((await bench.lease()).payload.data) == {"x": 2}


async def test_one_payload_for_many_dead_letters_is_refused_where_it_does_not_fit(bench: Bench) -> None:
    await bench.worker("w", (KIND, "other"))
    first, second, third = await bench.submit(), await bench.submit(kind="other"), await bench.submit()
    for lease in await bench.engine.claim("w", 3):
        await bench.settle(lease, FATAL)
    await bench.engine.declare([KindDefinition(kind=KIND, schema=TAKES_A_NUMBER)], ME)
    answers = await bench.engine.redrive([first, UNKNOWN, second, third, first], ME, payload={"y": 1})
    assert [type(each) for each in answers] == [Invalid, NotFound, str, Invalid, Invalid]
    states = [(await bench.view(each)).state for each in (first, second, third)]
    assert states == [TaskState.DEAD_LETTERED, TaskState.QUEUED, TaskState.DEAD_LETTERED]
    assert await bench.engine.redrive([first, third], ME) == [first, third], "their own payloads are not looked at"


async def test_what_the_results_of_others_fill_may_be_missing_from_the_payload_of_a_dead_letter(bench: Bench) -> None:
    nodes = [
        JobTaskRequest(kind="other", name="a"),
        JobTaskRequest(kind=KIND, name="b", payload={"y": 1}, depends_on=["a"], bindings={"x": "a"}),
    ]
    await bench.worker("w", (KIND, "other"))
    await bench.engine.declare([KindDefinition(kind=KIND, schema=TAKES_A_NUMBER)], ME)
    job = await bench.engine.submit_job(JobRequest(name="j", tasks=nodes), ME)
    await bench.settle(await bench.lease(), Succeeded(Body(b"7")))
    await bench.settle(await bench.lease(), FATAL)
    [refused] = await bench.engine.redrive([job.task_ids["b"]], ME, payload=[1])
    assert isinstance(refused, Invalid)
    assert await bench.engine.redrive([job.task_ids["b"]], ME, payload={"y": 2}) == [job.task_ids["b"]]


async def test_dead_letters_are_discarded_and_purged(bench: Bench) -> None:
    task_id, waiting = await dead_letter(bench), await bench.submit()
    assert await bench.engine.discard([task_id, waiting], ME) == [True, False]
    assert (await bench.view(task_id)).discarded
    assert await bench.engine.purge([task_id, waiting], OTHERS) == [False, False]
    assert await bench.engine.purge([task_id, waiting], ME) == [True, False]
    assert await bench.engine.views.task(ME.organization, task_id) is None


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(bench: Bench) -> None:
    await bench.worker()
    await bench.submit()
    hints = bench.engine.subscribe()
    await bench.engine.pause_queue("default", ME)
    assert await bench.engine.claim("w", 1) == []
    await hints.wait(0)
    await bench.engine.resume_queue("default", ME)
    assert Topic.READY in await hints.wait(0)
    assert len(await bench.engine.claim("w", 1)) == 1
    hints.close()


async def test_pausing_keeps_the_rest_of_the_policy(bench: Bench) -> None:
    await bench.engine.configure_queue("default", ME, dead_letters=False, depth=2)
    first = await bench.store.definitions.get(ME.organization, "queue", "default")
    assert first is not None
    await bench.engine.pause_queue("default", ME)
    await bench.engine.pause_queue("default", ME)
    stored = await bench.store.definitions.get(ME.organization, "queue", "default")
    assert stored is not None
    assert msgspec.json.decode(stored.document) == {"dead_letters": False, "depth": 2, "paused": True}
    assert stored.version == first.version + 1


async def test_two_operators_at_once_do_not_undo_each_other(bench: Bench) -> None:
    definitions = bench.store.definitions
    read = definitions.get
    others = [bench.engine.pause_queue("default", ME)]

    async def read_and_be_overtaken(*names: Any) -> Definition | None:
        stored = await read(*names)
        if others:
            await others.pop()
        return stored

    definitions.get = read_and_be_overtaken  # type: ignore[method-assign]
    await bench.engine.configure_queue("default", ME, depth=5)
    stored = await read(ME.organization, "queue", "default")
    assert stored is not None
    assert msgspec.json.decode(stored.document) == {"paused": True, "depth": 5}


async def test_a_queues_depth_refuses_what_is_too_much(bench: Bench) -> None:
    await bench.engine.configure_queue("default", ME, depth=2)
    await bench.submit()
    await bench.submit(delay=1000.0)
    assert isinstance(await bench.refusal(), Overloaded)
    await bench.engine.configure_queue("default", ME, unlimited=True)
    await bench.submit()


async def test_a_queue_without_dead_letters_fails_its_tasks(bench: Bench) -> None:
    await bench.engine.configure_queue("default", ME, dead_letters=False)
    await bench.worker()
    task_id = await bench.submit()
    await bench.settle(await bench.lease(), FATAL)
    assert (await bench.view(task_id)).state == TaskState.FAILED


async def test_purging_a_queue_cancels_all_that_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SWEEP_MAX_TASKS", 10)
    ids = [await bench.submit(payload=n) for n in range(35)]
    assert await bench.engine.purge_queue("default", ME) == 35
    assert (await bench.view(ids[0])).reason == "purged"
    assert await bench.engine.purge_queue("default", ME) == 0


@pytest.mark.parametrize("queue", ["", "no good", "q" * 101])
async def test_a_bad_queue_name_is_refused(bench: Bench, queue: str) -> None:
    with pytest.raises(Invalid, match="queue"):
        await bench.engine.pause_queue(queue, ME)
    with pytest.raises(Invalid, match="queue"):
        await bench.engine.purge_queue(queue, ME)


async def test_orders_reach_a_worker_at_its_next_sign(bench: Bench) -> None:
    await bench.worker()
    await bench.engine.order_worker("w", WorkerOrder.DRAIN, ME)
    assert await bench.engine.heartbeat("w", 10) is WorkerOrder.DRAIN
    await bench.engine.order_worker("w", WorkerOrder.WORK, ME)
    assert await bench.engine.heartbeat("w", 10) is WorkerOrder.WORK
    with pytest.raises(NotFound):
        await bench.engine.order_worker("nobody", WorkerOrder.PAUSE, ME)
    with pytest.raises(Invalid):
        await bench.engine.order_worker("w", "dance", ME)  # type: ignore[arg-type]
    assert await bench.engine.heartbeat("stranger", 1) is WorkerOrder.REVOKE


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "worker.name"),
        ({"host": "x" * 201}, "worker.host"),
        ({"kinds": ("no good",)}, "worker.kinds"),
        ({"queues": ("",)}, "worker.queues"),
        ({"capacity": -1}, "worker.capacity"),
    ],
)
async def test_a_worker_that_says_nonsense_is_refused(bench: Bench, change: dict[str, object], field: str) -> None:
    good = WorkerInfo("w", "w", "host", 1, "0.1", "build", (KIND,), ("default",), (), (), 1)
    with pytest.raises(Invalid) as refusal:
        await bench.engine.register(good._replace(**change))
    assert refusal.value.fields["field"] == field


async def test_a_worker_that_leaves_is_no_longer_active(bench: Bench) -> None:
    await bench.worker()
    await bench.engine.leave("w")
    (view,) = await bench.engine.views.workers(ME.organization, None)
    assert view.left_us is not None


@pytest.mark.parametrize("grace", [0.0, 5.0, 90.0])
async def test_holders_of_a_cancelled_jobs_tasks_have_the_grace_that_was_chosen(grace: float, bench: Bench) -> None:
    engine = bench.engine_with(cancel_grace=grace)
    await bench.worker()
    await engine.submit_job(JobRequest(name="j", tasks=[JobTaskRequest(kind=KIND, name="only")]), ME)
    lease = await bench.lease()
    assert lease.job_id is not None
    await engine.cancel_job(lease.job_id, ME)
    (cascade,) = [each for each in engine.duties() if each.name == "cascade"]
    await cascade.run_once(bench.clock.monotonic_us())
    (control,) = await engine.control("w")
    assert control.cancel_us == grace * limits.SECOND_US
