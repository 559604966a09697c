"""What a request does not say comes from its kind, and what the kind does not say from the system."""

from datetime import datetime, timedelta, timezone

import msgspec
import pytest

from engine.making import KIND, ME, Bench
from perdure.domain import limits
from perdure.domain.retry import Retry
from perdure.domain.task import NOTHING_RARE, Task, Terms
from perdure.engine.build_task import TaskBuilder, valid_trace
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.kinds import Kind, Kinds, Names, resolve
from perdure.engine.requests import KindDefinition, Principal, TaskRequest

SETTINGS = EngineSettings()


def build(bench: Bench, request: TaskRequest, definition: KindDefinition | None = None, by: Principal = ME) -> Task:
    names = Names.fresh()
    known = {}
    if definition is not None:
        known[definition.kind] = Kind(definition.kind, 1, resolve(definition, SETTINGS, names), definition.schema)
    kinds = Kinds(bench.store.definitions, bench.clock, SETTINGS, names)
    return TaskBuilder(by, known, kinds, names, bench.ids, bench.clock, SETTINGS.payload_max_bytes).build(request)


async def test_a_plain_request_takes_the_systems_defaults(bench: Bench) -> None:
    task = build(bench, TaskRequest(kind=KIND, payload={"x": 1}))
    terms = Terms(
        organization="default",
        kind=KIND,
        queue="default",
        priority=4,
        capabilities=(),
        encoding="json",
        principal="me",
        initiator="me",
        ttl_us=None,
        execution_limit_us=limits.EXECUTION_LIMIT_DEFAULT_US,
        timeout_us=None,
        lease_us=limits.LEASE_DEFAULT_US,
        max_attempts=3,
        max_losses=3,
        on_loss="retry",
        trigger="all_succeeded",
        if_failed="fail",
        retry=None,
    )
    assert task == Task(task.id, '{"x":1}', terms, NOTHING_RARE)


KNOWN = KindDefinition(
    kind=KIND,
    queue="slow",
    priority=7,
    retry=Retry(8, backoff="fixed", base=1.0),
    timeout=10.0,
    ttl=20.0,
    execution_limit=30.0,
    lease=40.0,
    max_losses=5,
    on_loss="fail",
    capabilities=["gpu", "disk", "gpu"],
    redact=True,
)


async def test_a_plain_request_takes_its_kinds_defaults(bench: Bench) -> None:
    task = build(bench, TaskRequest(kind=KIND), KNOWN)
    assert (task.terms.queue, task.terms.priority, task.terms.capabilities) == ("slow", 7, ("disk", "gpu"))
    assert (task.terms.timeout_us, task.terms.ttl_us) == (10_000_000, 20_000_000)
    assert (task.terms.execution_limit_us, task.terms.lease_us) == (30_000_000, 40_000_000)
    assert (task.terms.max_attempts, task.terms.max_losses, task.terms.on_loss) == (8, 5, "fail")
    assert task.terms.retry is not None
    assert msgspec.json.decode(task.terms.retry, type=Retry) == KNOWN.retry
    assert task.rare.options == '{"redact":true}'


async def test_what_a_request_says_wins_over_its_kind(bench: Bench) -> None:
    request = TaskRequest(
        kind=KIND,
        queue="fast",
        priority=0,
        timeout=1.5,
        ttl=2.5,
        execution_limit=3.5,
        lease=5.5,
        max_attempts=2,
        max_losses=1,
        on_loss="count",
        capabilities=[],
        labels={"a": "b"},
        metadata={"m": [1]},
    )
    task = build(bench, request, KNOWN)
    assert (task.terms.queue, task.terms.priority, task.terms.capabilities) == ("fast", 0, ())
    assert (task.terms.timeout_us, task.terms.ttl_us) == (1_500_000, 2_500_000)
    assert (task.terms.execution_limit_us, task.terms.lease_us) == (3_500_000, 5_500_000)
    assert (task.terms.max_attempts, task.terms.max_losses, task.terms.on_loss) == (2, 1, "count")
    assert task.terms.retry is not None
    assert msgspec.json.decode(task.terms.retry, type=Retry) == Retry(2, backoff="fixed", base=1.0)
    assert task.rare.options is not None
    assert msgspec.json.decode(task.rare.options) == {"labels": {"a": "b"}, "metadata": {"m": [1]}, "redact": True}


async def test_a_request_with_one_word_of_its_own_keeps_its_kinds_other_defaults(bench: Bench) -> None:
    special, plain = (
        build(bench, TaskRequest(kind=KIND, priority=1), KNOWN),
        build(bench, TaskRequest(kind=KIND), KNOWN),
    )
    assert special.terms._replace(priority=7) == plain.terms
    assert special.rare == plain.rare


async def test_an_initiator_is_kept_beside_the_principal(bench: Bench) -> None:
    task = build(bench, TaskRequest(kind=KIND), by=Principal("service", "acme", "alice"))
    assert (task.terms.organization, task.terms.principal, task.terms.initiator) == ("acme", "service", "alice")


async def test_a_moment_of_any_time_zone_is_the_same_instant(bench: Bench) -> None:
    moment = datetime(2027, 2, 3, 4, 5, 6, 789, tzinfo=timezone(timedelta(hours=-7)))
    task = build(bench, TaskRequest(kind=KIND, run_at=moment))
    assert task.rare.run_at_us == round(moment.timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("trace", "kept"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", True),
        ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", True),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", False),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", False),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", False),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", False),
        ("nonsense", False),
        (None, False),
        (7, False),
    ],
)
def test_an_invalid_trace_is_dropped(trace: object, kept: bool) -> None:
    assert valid_trace(trace) == (trace if kept else None)


async def test_a_submit_uses_what_its_kind_declared(bench: Bench) -> None:
    await bench.engine.declare([KNOWN], ME)
    task_id = await bench.submit()
    view = await bench.view(task_id)
    assert (view.queue, view.priority, view.max_attempts) == ("slow", 7, 8)


async def test_a_kind_that_another_process_declared_is_seen_soon(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, priority=2)], ME)
    assert (await bench.view(await bench.submit())).priority == 2
    document = msgspec.json.encode(KindDefinition(kind=KIND, priority=9)).decode()
    await bench.store.definitions.put("default", "kind", KIND, document, "other")
    bench.clock._loop.jump(3.0)  # type: ignore[attr-defined]
    assert (await bench.view(await bench.submit())).priority == 9
