"""What stands by travels with the commit of its event loop that brings work, and costs that commit nothing else."""

import asyncio
from typing import Any

import apsw
import pytest

from backends.sqlite.notes import ADDING, make_table, read_notes
from backends.sqlite.test_flushing_at_once import PATIENCE_SECONDS, alone
from backends.sqlite.test_writing import Faulty
from perdure.errors import Conflict, StoreFailed
from perdure.store.hub import HubSubscription
from perdure.store.relational.operation import Operation, StandBy
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic

TAKE = "DELETE FROM notes WHERE n IN (SELECT n FROM notes ORDER BY n LIMIT ?) RETURNING text, flush"
QUIETLY = Operation("add_quietly", 5, lambda tx, items: [tx.connection.execute("SELECT 1") for _ in items])


def take(tx: Transaction, items: list[Any]) -> list[Any]:
    """Take at most so many notes away; each with the instant of the transaction that wrote it, if that is another."""
    return [
        [text if flush == tx.now_us else (text, "late") for text, flush in tx.connection.execute(TAKE, (room,))]
        for room in items
    ]


def refuse(tx: Transaction, items: list[Any]) -> list[Any]:
    raise Conflict("nobody may have that", id="x")


async def watched(store: SqliteStore) -> None:
    """The first who waits lets the thread look at the file, which tells all: that has happened."""
    first = store.wakeups.subscribe(Topic.READY)
    if hasattr(store.writer, "_backlog"):
        assert await first.wait(PATIENCE_SECONDS)


class Takes:
    """Stands by for notes, and keeps what it is told."""

    def __init__(self, store: SqliteStore, room: int = 8, operation: Operation | None = None) -> None:
        self.subscription: HubSubscription = store.wakeups.subscribe(Topic.READY)
        self.told: list[Any] = []
        self._stand_by = StandBy(operation or Operation("take", 9, take), room, room, self, asyncio.get_running_loop())
        self.withdraw = store.writer.stand_by(self._stand_by)

    def begun(self) -> None:
        self.told.append("begun")

    def taken(self, taken: list[Any]) -> None:
        self.told.append(taken)

    def passed_by(self) -> None:
        self.told.append("passed by")

    def failed(self) -> None:
        self.told.append("failed")

    async def hears(self) -> bool:
        return bool(await self.subscription.wait(0.0))


async def add(store: SqliteStore, *notes: str) -> None:
    """Add notes in one lone call."""
    if hasattr(store.writer, "_backlog"):
        await alone(store)
    await store.writer.gather(ADDING, notes)


async def test_it_takes_what_the_commit_brings_and_then_stands_by_no_more(store: SqliteStore):
    await watched(store)
    takes, other = Takes(store), store.wakeups.subscribe(Topic.READY)
    await add(store, "a", "b")
    assert takes.told == ["begun", ["a", "b"]]
    assert not await takes.hears()
    assert await other.wait(0.0) == Topic.READY
    await add(store, "c")
    assert takes.told == ["begun", ["a", "b"]]
    assert await read_notes(store) == ["c"]
    assert await takes.hears()


async def test_whoever_could_take_no_more_hears_that_there_may_be_some(store: SqliteStore):
    await watched(store)
    takes = Takes(store, room=1)
    await add(store, "a", "b")
    assert takes.told == ["begun", ["a"]]
    assert await takes.hears()


async def test_whoever_found_nothing_for_itself_goes_on_standing_by(store: SqliteStore):
    await watched(store)
    takes = Takes(store, operation=Operation("take_nothing", 9, lambda tx, items: [[] for _ in items]))
    await add(store, "a")
    await add(store, "b")
    assert takes.told == ["begun", "passed by"] * 2
    assert not await takes.hears()
    assert await read_notes(store) == ["a", "b"]


async def test_whoever_found_nothing_stands_by_behind_the_others(store: SqliteStore):
    await watched(store)
    first = Takes(store, operation=Operation("take_nothing", 9, lambda tx, items: [[] for _ in items]))
    second = Takes(store)
    await add(store, "a")
    await add(store, "b")
    assert (first.told, second.told) == (["begun", "passed by"], ["begun", [("a", "late"), "b"]])


async def test_what_is_withdrawn_takes_nothing(store: SqliteStore):
    await watched(store)
    takes = Takes(store)
    takes.withdraw()
    takes.withdraw()
    await add(store, "a")
    assert takes.told == []
    assert await takes.hears()


async def test_a_commit_that_brings_no_work_takes_nobody_along(store: SqliteStore):
    await watched(store)
    await add(store, "a")
    takes = Takes(store)
    await store.writer.gather(QUIETLY, [None])
    assert [each for each in takes.told if each != "begun"] == []


async def test_of_two_the_one_that_stands_by_longest_goes_along(store: SqliteStore):
    await watched(store)
    first, second = Takes(store), Takes(store)
    await add(store, "a")
    assert (first.told, second.told) == (["begun", ["a"]], [])
    assert await second.hears()


async def test_a_commit_of_unknown_fate_tells_whoever_went_along(store: SqliteStore):
    await watched(store)
    takes = Takes(store)
    commits = store.writer.commits
    commits._connection = Faulty(commits.connected(), apsw.IOError("disk I/O error"), "COMMIT")  # type: ignore[assignment]
    with pytest.raises(StoreFailed):
        await add(store, "a")
    await add(store, "b")
    assert takes.told == ["begun", "failed"]
    assert await read_notes(store) == ["b"]


async def test_what_stands_by_and_is_refused_costs_the_others_nothing(store: SqliteStore):
    await watched(store)
    takes = Takes(store, operation=Operation("refuse", 9, refuse))
    await add(store, "a")
    assert takes.told == ["begun"]
    assert await read_notes(store) == ["a"]
    assert await takes.hears()


async def test_what_stands_by_and_fills_the_disk_costs_the_others_nothing(store: SqliteStore):
    await watched(store)
    takes = Takes(store)
    commits = store.writer.commits
    full = apsw.FullError("database or disk is full")
    commits._connection = Faulty(commits.connected(), full, "DELETE FROM notes")  # type: ignore[assignment]
    await add(store, "a")
    assert takes.told == ["begun"]
    assert await read_notes(store) == ["a"]
    assert await takes.hears()


async def test_whoever_went_along_with_a_commit_that_was_interrupted_is_told(threaded: SqliteStore):
    """As by Ctrl-C: the handler of a signal raises on the main thread, just after the commit."""
    await watched(threaded)
    takes = Takes(threaded)
    await alone(threaded)

    class Interrupted(BaseException):
        pass

    class Interrupting(Faulty):
        def execute(self, statement: str, *bindings: Any) -> Any:
            if self._fault is not None and self._at in statement:
                self._connection.execute(statement, *bindings)
            return super().execute(statement, *bindings)

    commits = threaded.writer.commits
    commits._connection = Interrupting(commits.connected(), Interrupted(), "COMMIT")  # type: ignore[assignment,arg-type]
    answer = threaded.writer.gather(ADDING, ["a"])
    with pytest.raises(Interrupted):
        threaded.writer._look_at_backlog(asyncio.get_running_loop())
    assert takes.told == ["begun", "failed"]
    assert await answer == ["noted a"]


async def test_what_gathers_is_left_to_the_thread_and_to_hints(threaded: SqliteStore):
    await watched(threaded)
    takes = Takes(threaded)
    await alone(threaded)
    await asyncio.gather(*(threaded.writer.gather(ADDING, [f"{n}"]) for n in range(3)))
    assert takes.told == []
    assert await takes.hears()


async def test_commits_of_another_loop_do_not_take_it_along(threaded: SqliteStore):
    await watched(threaded)
    takes = Takes(threaded)

    async def elsewhere() -> None:
        await add(threaded, "a")

    await asyncio.to_thread(asyncio.run, elsewhere())
    assert takes.told == []
    assert await takes.hears()
    await make_table(threaded)
