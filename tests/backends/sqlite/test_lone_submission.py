"""A task that is submitted alone is written in fewer steps, and stored as one among many."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from backends.sqlite.fixed_clock import FixedClock
from conformance.sqlite_rows import snapshot
from perdure.ambient import SystemClock
from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.domain.task import Rare, Task, Terms
from perdure.errors import IdempotencyConflict, Invalid, Overloaded
from perdure.store.ledger import Submitted
from perdure.store.sqlite import submission
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.store import SqliteStore
from perdure.testing import VirtualClock

PLAIN = Terms(
    organization="default",
    kind="work",
    queue="default",
    priority=5,
    capabilities=(),
    encoding="json",
    principal="alice",
    initiator="bob",
    ttl_us=None,
    execution_limit_us=limits.EXECUTION_LIMIT_DEFAULT_US,
    timeout_us=None,
    lease_us=limits.LEASE_DEFAULT_US,
    max_attempts=3,
    max_losses=4,
    on_loss="retry",
    trigger="all_succeeded",
    if_failed="fail",
    retry=None,
)
TERMS = [
    PLAIN,
    PLAIN._replace(ttl_us=60_000_000, timeout_us=5_000_000, retry='{"max_attempts":7}', max_attempts=7),
    PLAIN._replace(organization="other", kind="heavy", queue="gpu", priority=9, capabilities=("cuda",)),
    PLAIN._replace(on_loss="fail", if_failed="continue", trigger="all_done"),
]
TASKS = [Task(f"{n:036d}", f'{{"text":"grün {n}"}}', terms) for n, terms in enumerate(TERMS * 3)]
KEYED = [task._replace(rare=Rare(idempotency_key=f"key {task.id}", request_hash=f"hash {task.id}")) for task in TASKS]


async def stored(path: Path, calls: Sequence[Sequence[Task]]) -> dict[str, Any]:
    """Every row after these calls."""
    store = await SqliteStore.open(path, clock=FixedClock(), inline=True)
    for tasks in calls:
        answers = await store.ledger.submit(tasks)
        assert answers == [Submitted(task.id, TaskState.QUEUED, False) for task in tasks]
    await store.close()
    return snapshot(path)


@pytest.mark.parametrize("tasks", [TASKS, KEYED], ids=["plain", "keyed"])
async def test_tasks_submitted_one_by_one_have_the_rows_of_those_submitted_together(
    tasks: Sequence[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    together = await stored(tmp_path / "together.db", [tasks])
    monkeypatch.delattr(submission, "write_tasks")
    alone = await stored(tmp_path / "alone.db", [[task] for task in tasks])
    without = {"lanes", "counts"}  # Numbers of lanes follow the order in which they are met.
    assert {name: rows for name, rows in alone.items() if name not in {*without, "tasks", "live"}} == {
        name: rows for name, rows in together.items() if name not in {*without, "tasks", "live"}
    }
    for name in ("tasks", "live", "counts"):
        assert in_lanes(alone, name) == in_lanes(together, name)


def in_lanes(rows: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The rows of a table, with what their lanes stand for instead of the lanes' numbers."""
    lanes = {row["lane"]: tuple(row[each] for each in ("organization", "queue", "kind")) for row in rows["lanes"]}
    return sorted(({**row, "lane": lanes[row["lane"]]} for row in rows[name]), key=repr)


async def submitted(store: SqliteStore, task: Task) -> Any:
    (answer,) = await store.ledger.submit([task])
    return answer


async def test_the_same_task_again_is_answered_as_replayed(tmp_path: Path):
    store = await SqliteStore.open(tmp_path / "perdure.db", inline=True)
    assert await submitted(store, TASKS[0]) == Submitted(TASKS[0].id, TaskState.QUEUED, False)
    assert await submitted(store, TASKS[0]) == Submitted(TASKS[0].id, TaskState.QUEUED, True)
    await store.close()


async def test_a_key_that_is_known_is_answered_with_what_it_stands_for(tmp_path: Path):
    store = await SqliteStore.open(tmp_path / "perdure.db", inline=True)
    first, second = KEYED[0], KEYED[4]
    assert first.terms == second.terms
    assert await submitted(store, first) == Submitted(first.id, TaskState.QUEUED, False)
    again = second._replace(rare=first.rare)
    assert await submitted(store, again) == Submitted(first.id, TaskState.QUEUED, True)
    other = second._replace(rare=first.rare._replace(request_hash="other"))
    assert isinstance(await submitted(store, other), IdempotencyConflict)
    for mine in ({"organization": "theirs"}, {"principal": "carol"}):
        theirs = other._replace(id=repr(mine), terms=other.terms._replace(**mine))
        assert await submitted(store, theirs) == Submitted(theirs.id, TaskState.QUEUED, False)
    await store.close()


async def test_a_key_that_has_run_out_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock = VirtualClock()
    store = await SqliteStore.open(tmp_path / "perdure.db", clock=clock, inline=True)
    first, second = KEYED[0], KEYED[4]._replace(rare=KEYED[0].rare._replace(request_hash="other"))
    await submitted(store, first)
    clock.move(limits.IDEMPOTENCY_KEY_LIFE_US - 1)
    assert isinstance(await submitted(store, second), IdempotencyConflict)
    clock.move(1)
    with monkeypatch.context() as without:
        without.delattr(submission, "write_tasks")
        assert await submitted(store, second) == Submitted(second.id, TaskState.QUEUED, False)
    assert await submitted(store, second) == Submitted(second.id, TaskState.QUEUED, True)
    await store.close()


async def test_what_is_not_plain_is_treated_as_among_many(tmp_path: Path):
    clock = FixedClock()
    store = await SqliteStore.open(tmp_path / "perdure.db", clock=clock, inline=True)
    late = Task("late", "{}", PLAIN, Rare(delay_us=1))
    assert await submitted(store, late) == Submitted("late", TaskState.PENDING, False)
    assert isinstance(await submitted(store, Task("gone", "{}", PLAIN._replace(ttl_us=0))), Invalid)
    opaque = Task("opaque", "/wA=", PLAIN._replace(encoding="other"))
    assert await submitted(store, opaque) == Submitted("opaque", TaskState.QUEUED, False)
    (kept,) = [row["payload"] for row in snapshot(tmp_path / "perdure.db")["tasks"] if row["id"] == "opaque"]
    assert kept == b"\xff\x00"
    await store.close()


async def test_a_depth_holds_for_tasks_that_come_one_by_one(tmp_path: Path):
    store = await SqliteStore.open(tmp_path / "perdure.db", inline=True)
    await store.definitions.put("default", "queue", "default", '{"depth":2}', "alice")
    answers = [await submitted(store, Task(f"{n}", "{}", PLAIN)) for n in range(3)]
    assert [type(each) for each in answers] == [Submitted, Submitted, Overloaded]
    await store.close()


@pytest.mark.parametrize(("tasks", "more"), [(TASKS, []), (KEYED, ["lone_key"])], ids=["plain", "keyed"])
async def test_a_lone_task_takes_four_statements_and_one_for_a_key(
    tasks: Sequence[Task], more: list[str], tmp_path: Path
):
    store = await SqliteStore.open(tmp_path / "perdure.db", clock=SystemClock(), inline=True)
    await submitted(store, tasks[0])
    connection = store.writer.commits.connected()
    ran: list[str] = []
    connection.set_exec_trace(lambda _, statement, bindings: ran.append(statement) or True)
    await submitted(store, tasks[4])
    connection.set_exec_trace(None)
    names = {text.strip(): name for name, text in STATEMENTS.items()}
    assert [names[statement.strip()] for statement in ran] == [
        "transaction_begin",
        "lone_look",
        "lone_task",
        "lone_count",
        "lone_live",
        *more,
        "transaction_commit",
    ]
    await store.close()
