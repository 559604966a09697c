"""Tasks of one call, however alike: each keeps what is its own."""

import base64
import json
from typing import Any

from conformance.making import DONE, HOUR, ORGANIZATION, World
from perdure.domain.attempt import Lease
from perdure.domain.states import TaskState
from perdure.domain.task import Body, Task
from perdure.store.ledger import Submitted

OTHER = "other"
UNLIKE: tuple[dict[str, Any], ...] = (
    {},
    {"kind": OTHER},
    {"queue": OTHER},
    {"priority": 8},
    {"capabilities": ("gpu",)},
    {"payload": '"another"'},
    {"payload": base64.b64encode(bytes(range(256))).decode(), "encoding": "bytes"},
    {"principal": OTHER},
    {"initiator": OTHER},
    {"ttl": 500},
    {"execution_limit": 600},
    {"timeout": 7},
    {"lease": 11},
    {"max_attempts": 7},
    {"max_losses": 8},
    {"on_loss": "fail"},
    {"idempotency_key": "k", "request_hash": "h"},
    {"retry": json.dumps({"base": 5.0})},
    {"options": json.dumps({"labels": {"team": "a"}})},
    {"delay": 0},
    {"run_at_us": 1},
)


def body_of(task: Task) -> Body:
    data = task.payload.encode() if task.terms.encoding == "json" else base64.b64decode(task.payload)
    return Body(data, task.terms.encoding)


def asked(task: Task) -> tuple[Any, ...]:
    """What the lease of a task has to say."""
    terms = task.terms
    line = (terms.kind, terms.queue, terms.priority, body_of(task), terms.initiator, terms.retry, task.rare.options)
    return *line, terms.lease_us, terms.timeout_us, terms.execution_limit_us, terms.ttl_us, terms.max_attempts


def leased(lease: Lease) -> tuple[Any, ...]:
    line = (lease.kind, lease.queue, lease.priority, lease.payload, lease.initiator, lease.retry, lease.options)
    return *line, lease.lease_us, lease.timeout_us, lease.deadline_us, lease.start_within_us, lease.max_attempts


async def test_tasks_that_differ_in_one_thing_keep_it(world: World) -> None:
    await world.worker("wide", kinds=("work", OTHER), queues=("default", OTHER), capabilities=("gpu",))
    plain = [world.task(**unlike) for unlike in UNLIKE]
    again = [world.task(**unlike) for unlike in reversed(UNLIKE) if "idempotency_key" not in unlike]
    tasks = {task.id: task for task in [*plain, *again]}
    answers = await world.submit_all(list(tasks.values()))
    assert [each.id for each in answers if isinstance(each, Submitted)] == list(tasks)
    leases = {lease.hold.task_id: lease for lease in await world.claim(100, "wide")}
    assert leases.keys() == tasks.keys()
    facts = await world.ledger.facts([lease.hold for lease in leases.values()])
    for (id, lease), known in zip(leases.items(), facts, strict=True):
        task, view = tasks[id], await world.look(id)
        assert leased(lease) == asked(task)
        assert known is not None
        assert (known.max_losses, known.on_loss) == (task.terms.max_losses, task.terms.on_loss)
        assert (view.principal, view.idempotency_key) == (task.terms.principal, task.rare.idempotency_key)
        assert view.labels == ({"team": "a"} if task.rare.options else {})


async def test_tasks_of_two_organizations_stay_apart(world: World) -> None:
    tasks = [world.task(organization=organization) for organization in (ORGANIZATION, OTHER, ORGANIZATION, OTHER)]
    await world.submit_all(tasks)
    for task in tasks:
        assert (await world.look(task.id, task.terms.organization)).organization == task.terms.organization
        stranger = OTHER if task.terms.organization == ORGANIZATION else ORGANIZATION
        assert await world.views.task(stranger, task.id) is None


async def test_lines_keep_their_order_through_a_call_of_many(world: World) -> None:
    tasks = [world.task(retry=json.dumps({"base": float(1 + n % 3)})) for n in range(1_203)]
    late = [world.task(delay=HOUR) for _ in range(57)]
    mixed = [*tasks[:700], *late, *tasks[700:]]
    answers = await world.submit_all(mixed)
    states = [each.state for each in answers if isinstance(each, Submitted)]
    assert states == [TaskState.QUEUED] * 700 + [TaskState.PENDING] * 57 + [TaskState.QUEUED] * 503
    claimed = [lease.hold.task_id for _ in range(3) for lease in await world.claim(500)]
    assert claimed == [task.id for task in tasks]


async def test_the_same_task_twice_in_one_call_is_stored_once(world: World) -> None:
    tasks = [world.task() for _ in range(5)]
    answers = await world.submit_all([*tasks, tasks[2], tasks[4]])
    told = [(each.id, each.replayed) for each in answers if isinstance(each, Submitted)]
    assert [id for id, _ in told] == [task.id for task in [*tasks, tasks[2], tasks[4]]]
    assert len(await world.claim(50)) == 5


async def test_a_call_sent_again_after_its_answer_was_lost_stores_nothing_more(world: World) -> None:
    tasks = [world.task(**unlike) for unlike in UNLIKE if "idempotency_key" not in unlike]
    await world.submit_all(tasks)
    lease = await world.claim_one()
    await world.finish(lease, settlement=DONE)
    with world.unchanged():
        answers = await world.submit_all(tasks)
    assert [(each.id, each.replayed) for each in answers if isinstance(each, Submitted)] == [
        (task.id, True) for task in tasks
    ]
