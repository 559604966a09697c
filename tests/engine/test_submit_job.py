"""A job is taken whole or not at all, with its DAG checked and its policies worked out."""

from typing import Any

import pytest

from engine.making import BOOM, DONE, KIND, ME, Bench
from perdure.domain import limits
from perdure.domain.outcome import Failed, Failure
from perdure.domain.states import JobState, TaskState
from perdure.domain.task import Job
from perdure.engine.build_task import TaskBuilder
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.kinds import Kinds, Names
from perdure.engine.requests import Dependency, JobRequest, JobTaskRequest, KindDefinition
from perdure.engine.submit_job import build_job
from perdure.errors import IdempotencyConflict, Invalid, Refused, TooLarge

SETTINGS = EngineSettings()
FATAL = Failed(Failure("ValueError", "fatal"), permanent=True)


def node(name: str, *above: str | Dependency, **fields: Any) -> JobTaskRequest:
    return JobTaskRequest(**{"kind": KIND, "name": name, "depends_on": list(above), **fields})


def diamond(**fields: Any) -> JobRequest:
    tasks = [node("end", "left", "right"), node("left", "start"), node("right", "start"), node("start")]
    return JobRequest(name="diamond", tasks=tasks, **fields)


def built(bench: Bench, request: JobRequest) -> Job:
    names = Names.fresh()
    kinds = Kinds(bench.store.definitions, bench.clock, SETTINGS, names)
    builder = TaskBuilder(ME, {}, kinds, names, bench.ids, bench.clock, SETTINGS.payload_max_bytes)
    return build_job(request, ME, bench.ids.new(), builder)


async def test_parents_come_before_their_children(bench: Bench) -> None:
    job = built(bench, diamond())
    assert [task.rare.name for task in job.tasks] == ["start", "left", "right", "end"]
    assert {task.rare.name: task.rare.waits for task in job.tasks} == {"start": 0, "left": 1, "right": 1, "end": 2}
    assert {task.rare.job for task in job.tasks} == {job.id}
    names = {task.id: task.rare.name for task in job.tasks}
    edges = {(names[edge.parent], names[edge.child], edge.policy) for edge in job.edges}
    assert edges == {
        ("start", "left", "fail"),
        ("start", "right", "fail"),
        ("left", "end", "fail"),
        ("right", "end", "fail"),
    }


async def test_an_edge_may_say_otherwise_than_its_job(bench: Bench) -> None:
    request = JobRequest(
        name="policies",
        on_failure="fail",
        tasks=[
            node("a"),
            node("b"),
            node("c"),
            node("lenient", Dependency(name="a", on_failure="continue")),
            node("strict", Dependency(name="b", on_failure="cancel_job"), "c"),
        ],
    )
    job = built(bench, request)
    assert {task.rare.name: task.terms.if_failed for task in job.tasks} == {
        "a": "continue",
        "b": "cancel_job",
        "c": "fail",
        "lenient": "fail",
        "strict": "fail",
    }
    names = {task.id: task.rare.name for task in job.tasks}
    assert {names[edge.parent]: edge.policy for edge in job.edges} == {"a": "continue", "b": "fail", "c": "fail"}


@pytest.mark.parametrize(
    ("request_", "field", "named"),
    [
        (JobRequest(name="", tasks=[node("a")]), "name", ""),
        (JobRequest(name="j", tasks=[]), "tasks", "at least one"),
        (JobRequest(name="j", tasks=[node("a"), node("a")]), "tasks", "'a'"),
        (JobRequest(name="j", tasks=[node("a", "a")]), "tasks", "'a' depends on itself"),
        (JobRequest(name="j", tasks=[node("a", "x")]), "tasks", "'x'"),
        (JobRequest(name="j", tasks=[node("a"), node("b", "a", "a")]), "tasks.b.depends_on", "'a' twice"),
        (JobRequest(name="j", tasks=[node("a", "b"), node("b", "a")]), "tasks", "circle"),
        (JobRequest(name="j", tasks=[node(" a")]), "tasks.name", "space"),
        (JobRequest(name="j", tasks=[node("a", priority=12)]), "tasks.a.priority", "task 'a'"),
        (JobRequest(name="j", tasks=[node("a", trigger="never")]), "tasks.a.trigger", "all_done"),
        (JobRequest(name="j", tasks=[node("a", idempotency_key="k")]), "tasks.a.idempotency_key", "one"),
        (JobRequest(name="j", tasks=[node("a", bindings={"x": "b"})]), "tasks.a.bindings.x", "'b'"),
        (JobRequest(name="j", tasks=[node("a"), node("b", "a", bindings={"": "a"})]), "tasks.b.bindings", ""),
        (JobRequest(name="j", tasks=[node("a", payload={"x": float("inf")})]), "tasks.a.payload.x", "finite"),
        (JobRequest(name="j", tasks=[node("a")], on_failure="shrug"), "on_failure", "cancel_job"),  # type: ignore[arg-type]
        (JobRequest(name="j", tasks=[node("a")], idempotency_key=""), "idempotency_key", "255"),
        (JobRequest(name="j", tasks=[node("a")], metadata=float("nan")), "metadata", "finite"),
        (
            JobRequest(name="j", tasks=[node("a"), node("b", Dependency(name="a", on_failure="no"))]),  # type: ignore[arg-type]
            "tasks.b.depends_on",
            "continue",
        ),
    ],
)
async def test_a_bad_job_is_refused_whole(bench: Bench, request_: JobRequest, field: str, named: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await bench.engine.submit_job(request_, ME)
    assert refusal.value.fields["field"] == field
    assert named in refusal.value.message
    assert (await bench.engine.views.jobs(ME.organization, [], 10)).rows == []


@pytest.mark.parametrize("bound", ["a", ["a"]])
async def test_a_task_whose_fields_are_bound_needs_no_payload(bench: Bench, bound: str | list[str]) -> None:
    schema = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
    await bench.engine.declare([KindDefinition(kind="taker", schema=schema)], ME)
    taker = node("b", "a", kind="taker", bindings={"x": bound})
    job = await bench.engine.submit_job(JobRequest(name="j", tasks=[node("a"), taker]), ME)
    payloads = {}
    for name, task_id in job.task_ids.items():
        view = await bench.engine.views.task(ME.organization, task_id)
        assert view is not None
        assert view.payload is not None
        payloads[name] = view.payload.data
    assert payloads == {"a": b"null", "b": b"{}"}


async def test_metadata_of_a_job_is_bounded(bench: Bench) -> None:
    with pytest.raises(TooLarge):
        await bench.engine.submit_job(diamond(metadata="x" * limits.METADATA_MAX_BYTES), ME)


async def test_the_same_job_again_is_a_replay_and_another_a_conflict(bench: Bench) -> None:
    first = await bench.engine.submit_job(diamond(idempotency_key="k"), ME)
    again = await bench.engine.submit_job(diamond(idempotency_key="k"), ME)
    assert again == first._replace(replayed=True)
    with pytest.raises(IdempotencyConflict) as refusal:
        await bench.engine.submit_job(diamond(idempotency_key="k", on_failure="continue"), ME)
    assert refusal.value.fields["job_id"] == first.id


async def test_a_job_runs_from_its_first_task_to_its_last(bench: Bench) -> None:
    await bench.worker()
    job = await bench.engine.submit_job(diamond(), ME)
    started = []
    while leases := await bench.engine.claim("w", 10):
        started.append(sorted(lease.name or "" for lease in leases))
        await bench.engine.settle([(lease.hold, DONE) for lease in leases])
    assert started == [["start"], ["left", "right"], ["end"]]
    view = await bench.engine.views.job(ME.organization, job.id)
    assert view is not None
    assert view.state == JobState.SUCCEEDED


async def test_a_failure_runs_down_a_chain_by_the_cascade(bench: Bench) -> None:
    await bench.worker()
    tasks = [node("t0"), *(node(f"t{n}", f"t{n - 1}") for n in range(1, 30))]
    job = await bench.engine.submit_job(JobRequest(name="chain", tasks=tasks), ME)
    await bench.settle(await bench.lease(), FATAL)
    await bench.run_duty("cascade")
    states = {each.name: each.state for each in await bench.engine.views.job_tasks(ME.organization, job.id)}
    assert states.pop("t0") == TaskState.DEAD_LETTERED
    assert set(states.values()) == {TaskState.CANCELLED}


async def test_a_failed_attempt_with_budget_left_ends_no_job(bench: Bench) -> None:
    await bench.worker()
    job = await bench.engine.submit_job(diamond(), ME)
    await bench.settle(await bench.lease(), BOOM)
    view = await bench.engine.views.job(ME.organization, job.id)
    assert view is not None
    assert view.state == JobState.RUNNING


async def test_a_big_job_is_built_in_line_with_its_size(bench: Bench) -> None:
    children = [node(f"c{n}", "root", payload=n) for n in range(9_000)]
    more = [node(f"d{n}", f"c{n}") for n in range(9_000)]
    job = built(bench, JobRequest(name="big", tasks=[node("root"), *children, *more]))
    assert len(job.tasks) == 18_001
    assert len(job.edges) == 18_000


async def test_all_payloads_of_one_call_together_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SUBMIT_MAX_BYTES", 100)
    tasks = [node(f"t{n}", payload="x" * 40) for n in range(3)]
    with pytest.raises(TooLarge):
        built(bench, JobRequest(name="heavy", tasks=tasks))


async def test_refusals_of_a_job_are_refusals(bench: Bench) -> None:
    with pytest.raises(Refused, match="task 'a'"):
        built(bench, JobRequest(name="j", tasks=[node("a", queue="no good")]))
