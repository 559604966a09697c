"""Tasks that differ in id and payload only are written from columns, and stored as those that each have an object."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.sqlite.test_lone_submission import PLAIN, TERMS, stored
from conformance.sqlite_rows import snapshot
from perdure.domain.states import TaskState
from perdure.domain.task import Alike, Task, Terms
from perdure.errors import Invalid, Overloaded
from perdure.store.ledger import Submitted
from perdure.store.sqlite import submission
from perdure.store.sqlite.store import SqliteStore


def alike(terms: Terms, count: int = 7, first: int = 0) -> Alike:
    """Tasks of these terms."""
    numbers = range(first, first + count)
    return Alike([f"{n:036d}" for n in numbers], [f'{{"text":"grün {n}"}}'.encode() for n in numbers], terms)


def test_they_are_the_tasks_that_they_stand_for() -> None:
    tasks = alike(PLAIN)
    assert list(tasks) == [Task(f"{n:036d}", f'{{"text":"grün {n}"}}', PLAIN) for n in range(7)]
    assert tasks[-1] == list(tasks)[-1]
    part = tasks[2:5]
    assert isinstance(part, Alike)
    assert list(part) == list(tasks)[2:5]
    with pytest.raises(IndexError):
        tasks[7]


@pytest.mark.parametrize("terms", TERMS)
async def test_the_rows_are_those_of_tasks_that_each_have_an_object(
    terms: Terms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [alike(terms), alike(terms, 600, 7)]
    objects = await stored(tmp_path / "objects.db", [list(tasks) for tasks in calls])
    monkeypatch.delattr(submission, "write_tasks")
    columns = await stored(tmp_path / "columns.db", calls)
    assert columns == objects


async def test_they_are_refused_as_all_others(tmp_path: Path) -> None:
    overdue = alike(PLAIN._replace(ttl_us=0))
    assert all(isinstance(answer, Invalid) for answer in (await answered(tmp_path / "overdue.db", [overdue]))[0])
    path = tmp_path / "full.db"
    told = (await answered(path, [alike(PLAIN)], depth=5))[0]
    assert [type(answer) for answer in told] == [Submitted] * 5 + [Overloaded] * 2
    assert len(snapshot(path)["tasks"]) == 5


async def test_a_call_that_is_repeated_because_its_answer_was_lost_is_answered(tmp_path: Path) -> None:
    tasks = alike(PLAIN)
    more = Alike([*tasks.ids, "new"], [*tasks.payloads, b"{}"], PLAIN)
    first, again = await answered(tmp_path / "repeated.db", [tasks, more])
    assert [answer.replayed for answer in first] == [False] * 7
    assert again == [Submitted(id, TaskState.QUEUED, id != "new") for id in more.ids]
    assert len(snapshot(tmp_path / "repeated.db")["tasks"]) == 8


async def answered(path: Path, calls: Sequence[Sequence[Task]], depth: int | None = None) -> list[list[Submitted]]:
    """The answers to these calls, of a store whose queue has this depth."""
    store = await SqliteStore.open(path, inline=True)
    if depth is not None:
        document = f'{{"depth":{depth}}}'
        await store.definitions.put("default", "queue", "default", document, "operator")
    answers = [await store.ledger.submit(tasks) for tasks in calls]
    await store.close()
    return answers  # type: ignore[return-value]
