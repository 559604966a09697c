"""What the writer promises: together, apart when one is at fault, and nothing acknowledged that did not last."""

import asyncio
from typing import Any

import apsw
import pytest

from backends.sqlite.notes import ADDING, count_flushes, read_notes
from perdure.errors import Conflict, Invalid, InvariantBroken, Misuse, StoreFailed, StoreFull, StoreReadOnly
from perdure.store.relational.operation import Operation
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.transaction import Transaction


async def test_each_item_gets_its_result_in_order(store: SqliteStore):
    assert await store.writer.gather(ADDING, ["a", "b"]) == ["noted a", "noted b"]
    assert await read_notes(store) == ["a", "b"]


async def test_no_items_need_no_results(store: SqliteStore):
    assert await store.writer.gather(ADDING, []) == []


async def test_calls_made_while_a_flush_is_under_way_share_the_next(threaded: SqliteStore):
    await asyncio.gather(*(threaded.writer.gather(ADDING, [str(n)]) for n in range(200)))

    assert sorted(map(int, await read_notes(threaded))) == list(range(200))
    assert await count_flushes(threaded) < 50


async def test_one_bad_item_among_a_hundred_costs_only_itself(store: SqliteStore):
    items = [str(n) for n in range(100)]
    items[37] = "bad"
    results = await store.writer.gather(ADDING, items)

    assert isinstance(results[37], Invalid)
    assert [result for n, result in enumerate(results) if n != 37] == [f"noted {n}" for n in range(100) if n != 37]
    assert await read_notes(store) == [item for item in items if item != "bad"]


async def test_a_lone_bad_item_raises_and_leaves_nothing(store: SqliteStore):
    with pytest.raises(Invalid) as caught:
        await store.writer.gather(ADDING, ["bad"])
    assert "CHECK" in str(caught.value)
    assert await read_notes(store) == []


async def test_a_caller_at_fault_costs_its_neighbours_nothing(threaded: SqliteStore):
    calls = [threaded.writer.gather(ADDING, [text]) for text in ("a", "refused", "b", "bad", "c")]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(answer) for answer in answers] == [list, Conflict, list, Invalid, list]
    assert sorted(await read_notes(threaded)) == ["a", "b", "c"]


async def test_a_refusal_of_a_whole_call_is_raised_to_its_caller(store: SqliteStore):
    with pytest.raises(Conflict):
        await store.writer.gather(ADDING, ["a", "refused", "b"])
    assert await read_notes(store) == []


async def test_a_defect_in_one_operation_costs_another_nothing(threaded: SqliteStore):
    def stumble(tx: Transaction, items: list[Any]) -> list[Any]:
        raise KeyError("a defect")

    wrong = threaded.writer.gather(Operation("stumble", 1, stumble), [1, 2])
    right = threaded.writer.gather(ADDING, ["a"])

    assert await right == ["noted a"]
    with pytest.raises(KeyError):
        await wrong


async def test_an_operation_that_loses_a_result_is_a_defect_and_writes_nothing(store: SqliteStore):
    def forget(tx: Transaction, items: list[Any]) -> list[Any]:
        return ADDING.apply(tx, items)[1:]

    with pytest.raises(InvariantBroken):
        await store.writer.gather(Operation("forget", 1, forget), ["a", "b"])
    assert await read_notes(store) == []


async def test_what_waits_for_the_commit_is_done_once_even_after_a_second_try(store: SqliteStore):
    done: list[int] = []

    def remember(tx: Transaction, items: list[Any]) -> list[Any]:
        tx.after_commit(lambda: done.extend(items))
        if len(items) > 1 and 2 in items:
            raise OverflowError("an item too big")
        return [None for _ in items]

    await store.writer.gather(Operation("remember", 1, remember), [1, 2, 3])
    assert sorted(done) == [1, 2, 3]


async def test_the_order_within_a_flush_is_by_rank(threaded: SqliteStore):
    order: list[str] = []

    def noting(name: str) -> Operation:
        def note(tx: Transaction, items: list[Any]) -> list[Any]:
            order.append(name)
            return [None for _ in items]

        return Operation(name, {"settle": 1, "claim": 9}.get(name, 0), note)

    claim, settle = noting("claim"), noting("settle")
    # The first call is flushed at once; the others gather behind it.
    await asyncio.gather(*(threaded.writer.gather(each, [1]) for each in (noting("first"), claim, settle, claim)))
    assert order[-2:] == ["settle", "claim"]


class Faulty:
    """A connection that fails at one of its statements, then works as the real one."""

    def __init__(self, connection: apsw.Connection, fault: Exception, at: str) -> None:
        self._connection = connection
        self._fault: Exception | None = fault
        self._at = at

    def execute(self, statement: str, *bindings: Any) -> Any:
        if self._fault is not None and self._at in statement:
            fault, self._fault = self._fault, None
            raise fault
        return self._connection.execute(statement, *bindings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def test_after_an_error_of_the_disk_at_the_commit_nothing_is_acknowledged_and_the_next_flush_reconnects(
    store: SqliteStore,
):
    commits = store.writer.commits
    real = commits.connected()
    commits._connection = Faulty(real, apsw.IOError("disk I/O error"), "COMMIT")  # type: ignore[assignment]

    with pytest.raises(StoreFailed):
        await store.writer.gather(ADDING, ["lost"])
    assert await store.writer.gather(ADDING, ["kept"]) == ["noted kept"]
    assert commits.connection is not real
    assert await read_notes(store) == ["kept"]


async def test_a_full_disk_is_told_to_everybody_and_the_store_goes_on_once_there_is_space(store: SqliteStore):
    commits = store.writer.commits
    real = commits.connected()
    commits._connection = Faulty(real, apsw.FullError("database or disk is full"), "INSERT INTO notes")  # type: ignore[assignment]

    with pytest.raises(StoreFull):
        await store.writer.gather(ADDING, ["lost"])
    assert await store.writer.gather(ADDING, ["kept"]) == ["noted kept"]
    assert await read_notes(store) == ["kept"]


async def test_a_claim_waits_for_no_disk_and_a_settle_does(threaded: SqliteStore, tmp_path):
    strict = await SqliteStore.open(str(tmp_path / "strict.db"))
    levels: list[int] = []

    def look(tx: Transaction, items: list[Any]) -> list[Any]:
        levels.append(tx.connection.pragma("synchronous"))  # type: ignore[attr-defined]
        return [None for _ in items]

    light, durable = Operation("light", 1, look, durable=False), Operation("durable", 1, look)
    for each in (light, durable, light):
        await strict.writer.gather(each, [1])
    await strict.close()

    assert levels == [1, 2, 1]


async def test_closing_finishes_what_has_gathered(tmp_path):
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), synchronous="NORMAL")
    answers = [store.writer.gather(Operation("echo", 1, lambda tx, items: items), [n]) for n in range(50)]
    await store.close()

    assert [await answer for answer in answers] == [[n] for n in range(50)]


async def test_a_closed_store_refuses_and_closes_again_without_harm(store: SqliteStore):
    await store.close()
    await store.close()
    with pytest.raises(Misuse):
        store.writer.gather(ADDING, ["late"])
    with pytest.raises(Misuse):
        store.readers.read(lambda tx: None)


async def test_the_last_to_close_leaves_one_file_and_the_lock(tmp_path):
    store = await SqliteStore.open(str(tmp_path / "perdure.db"))
    await store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["perdure.db", "perdure.db-lock"]


async def test_a_question_sees_one_snapshot_and_cannot_write(threaded: SqliteStore):
    await threaded.writer.gather(ADDING, ["a"])
    with pytest.raises(StoreReadOnly):
        await threaded.readers.read(lambda tx: tx.connection.execute("DELETE FROM notes"))
    assert await read_notes(threaded) == ["a"]


async def test_a_question_that_fails_fails_alone(store: SqliteStore):
    def wrong(tx: Transaction) -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        await store.readers.read(wrong)
    assert await store.readers.read(lambda tx: tx.now_us > 0)


async def test_a_database_in_memory_needs_no_file():
    store = await SqliteStore.open(":memory:", inline=True)
    await store.definitions.put("default", "queue", "q", "{}", "me")
    assert await store.definitions.get("default", "queue", "q") is not None
    await store.close()


async def test_a_database_in_memory_cannot_have_threads():
    with pytest.raises(Misuse):
        await SqliteStore.open(":memory:")
