"""A lone small call is flushed on its caller's event loop: whatever comes between, it is written once and answered."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from backends.sqlite.notes import ADDING, make_table, read_notes
from backends.sqlite.processes import finish, start
from backends.sqlite.test_writing import Faulty
from perdure.ambient import SystemClock
from perdure.errors import Conflict, Invalid, Misuse, StoreFailed, StoreFull
from perdure.store.relational.operation import Operation
from perdure.store.sqlite.lock import FileLock
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.transaction import Transaction
from perdure.store.sqlite.writer import HERE_MAX_ITEMS

PATIENCE_SECONDS = 20.0


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.001)


async def alone(store: SqliteStore) -> None:
    """Nothing gathers, and the writer's thread sleeps."""
    await until(lambda: store.writer._backlog._idle)


def noting_threads(threads: list[int]) -> Operation:
    def note(tx: Transaction, items: list[Any]) -> list[Any]:
        threads.append(threading.get_ident())
        return list(items)

    return Operation("note_threads", 1, note)


async def test_a_lone_call_is_flushed_on_its_callers_thread_and_several_are_on_the_writers(threaded: SqliteStore):
    threads: list[int] = []
    operation = noting_threads(threads)
    await alone(threaded)
    await threaded.writer.gather(operation, [1])
    assert threads == [threading.get_ident()]

    await alone(threaded)
    await asyncio.gather(*(threaded.writer.gather(operation, [n]) for n in range(3)))
    await alone(threaded)
    await threaded.writer.gather(operation, range(HERE_MAX_ITEMS + 1))
    assert threading.get_ident() not in threads[1:]


async def test_what_one_turn_of_the_loop_sends_is_one_flush(threaded: SqliteStore):
    threads: list[int] = []
    operation = noting_threads(threads)
    await alone(threaded)
    answers = await asyncio.gather(*(threaded.writer.gather(operation, [n]) for n in range(5)))
    assert answers == [[n] for n in range(5)]
    assert len(threads) == 1


async def test_a_caller_that_is_cancelled_before_the_flush_has_its_call_written_once(threaded: SqliteStore):
    await alone(threaded)
    answer = asyncio.ensure_future(threaded.writer.gather(ADDING, ["a"]))
    await asyncio.sleep(0)
    answer.cancel()
    await threaded.writer.gather(ADDING, ["b"])
    assert await read_notes(threaded) == ["a", "b"]


async def test_an_answer_is_there_whenever_it_is_asked_for(threaded: SqliteStore):
    await alone(threaded)
    late = threaded.writer.gather(ADDING, ["a"])
    await until(lambda: not len(threaded.writer._backlog))
    await alone(threaded)
    refused = threaded.writer.gather(ADDING, ["refused"])
    assert await late == ["noted a"]
    with pytest.raises(Conflict):
        await refused


async def test_a_call_that_waits_on_another_loop_is_not_flushed_here(threaded: SqliteStore):
    await alone(threaded)
    threads: list[int] = []
    there = asyncio.new_event_loop()
    call = threaded.writer._backlog.put(noting_threads(threads), [1], ring=False)
    threaded.writer._look_at_backlog(there)
    assert await call.future() == [1]
    assert threads != [threading.get_ident()]
    there.close()


async def test_an_item_at_fault_is_found_by_the_thread_and_its_caller_is_told(threaded: SqliteStore):
    for items, error in ((["bad"], Invalid), (["a", "refused"], Conflict)):
        await alone(threaded)
        with pytest.raises(error):
            await threaded.writer.gather(ADDING, items)
    await alone(threaded)
    answers = await threaded.writer.gather(ADDING, ["a", "bad", "b"])
    assert [type(each) for each in answers] == [str, Invalid, str]
    assert await read_notes(threaded) == ["a", "b"]


# The file is somebody else's


def left_to_the_thread(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set once the writer's thread begins to flush what the loop could not."""
    begun, flush = threading.Event(), store.writer.commits.flush

    def flush_and_tell(calls: Any) -> None:
        begun.set()
        flush(calls)

    monkeypatch.setattr(store.writer.commits, "flush", flush_and_tell)
    return begun


async def turns_while(act: Callable[[], None], answer: asyncio.Future[Any], begun: threading.Event) -> None:
    """The loop turns while the thread waits, nothing is answered; then the file is let go of."""
    assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    assert not answer.done()
    act()


async def test_a_transaction_elsewhere_is_waited_for_without_holding_the_loop_up(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = apsw.Connection(threaded.path)
    elsewhere.execute("BEGIN IMMEDIATE")
    await alone(threaded)
    begun = left_to_the_thread(threaded, monkeypatch)
    answer = asyncio.ensure_future(threaded.writer.gather(ADDING, ["a"]))
    await turns_while(lambda: elsewhere.execute("ROLLBACK") and None, answer, begun)
    assert await answer == ["noted a"]
    elsewhere.close()


async def test_another_process_turn_is_waited_for_without_holding_the_loop_up(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    other = FileLock(threaded.path, 1.0)
    other.acquire()
    await alone(threaded)
    begun = left_to_the_thread(threaded, monkeypatch)
    answer = asyncio.ensure_future(threaded.writer.gather(ADDING, ["a"]))
    await turns_while(other.release, answer, begun)
    assert await answer == ["noted a"]
    other.close()


async def test_a_lock_that_cannot_be_asked_for_is_told_to_the_caller(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    def fail(self: FileLock) -> bool:
        raise OSError(37, "No locks available")

    await alone(threaded)
    monkeypatch.setattr(FileLock, "acquire_at_once", fail)
    with pytest.raises(StoreFailed):
        await threaded.writer.gather(ADDING, ["lost"])
    monkeypatch.undo()
    assert await threaded.writer.gather(ADDING, ["kept"]) == ["noted kept"]
    assert await read_notes(threaded) == ["kept"]


# The disk


async def test_after_an_error_of_the_disk_at_the_commit_nothing_is_acknowledged(threaded: SqliteStore):
    commits = threaded.writer.commits
    real = commits.connected()
    await alone(threaded)
    commits._connection = Faulty(real, apsw.IOError("disk I/O error"), "COMMIT")  # type: ignore[assignment]
    with pytest.raises(StoreFailed):
        await threaded.writer.gather(ADDING, ["lost"])
    assert commits.connection is None

    await alone(threaded)
    assert await threaded.writer.gather(ADDING, ["kept"]) == ["noted kept"]
    assert await read_notes(threaded) == ["kept"]


async def test_a_full_disk_is_told_and_makes_the_thread_move_the_log_into_the_file(threaded: SqliteStore):
    commits = threaded.writer.commits
    real = commits.connected()
    await alone(threaded)
    commits._connection = Faulty(real, apsw.FullError("database or disk is full"), "COMMIT")  # type: ignore[assignment]
    with pytest.raises(StoreFull):
        await threaded.writer.gather(ADDING, ["lost"])
    await until(lambda: not commits.checkpoint_due)
    assert await threaded.writer.gather(ADDING, ["kept"]) == ["noted kept"]
    assert await read_notes(threaded) == ["kept"]


async def test_what_was_committed_is_never_run_again_though_telling_of_it_fails(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    def fail(topics: object, sated: object) -> None:
        raise RuntimeError("nobody can be told")

    monkeypatch.setattr(threaded.writer.commits, "_announce", fail)
    for notes in (["a"], ["b", "c"]):
        await alone(threaded)
        answers = [threaded.writer.gather(ADDING, [note]) for note in notes]
        told = await asyncio.gather(*answers, threaded.writer.gather(noting_threads([]), []), return_exceptions=True)
        assert [type(each) for each in told[:-1]] == [RuntimeError] * len(notes)
    monkeypatch.undo()
    assert await threaded.writer.gather(ADDING, ["d"]) == ["noted d"]
    assert await read_notes(threaded) == ["a", "b", "c", "d"]


class Ticking(SystemClock):
    """A clock whose seconds pass faster when a test says so."""

    ahead_us = 0

    def monotonic_us(self) -> int:
        return super().monotonic_us() + self.ahead_us


async def test_slow_commits_go_to_the_thread_and_one_is_tried_again_after_a_while(tmp_path: Path):
    clock, threads = Ticking(), list[int]()

    def note_slowly(tx: Transaction, items: list[Any]) -> list[Any]:
        threads.append(threading.get_ident())
        clock.ahead_us += 50_000
        return list(items)

    slow, quick = Operation("slow", 1, note_slowly), noting_threads(threads)
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), clock=clock)

    async def ran_here(operation: Operation) -> bool:
        await alone(store)
        await store.writer.gather(operation, [1])
        return threads[-1] == threading.get_ident()

    await store.writer.gather(quick, [1])
    for _ in range(100):
        if not await ran_here(slow):
            break
    assert not await ran_here(quick)
    clock.ahead_us += 2_000_000
    assert await ran_here(slow)
    assert not await ran_here(quick)
    clock.ahead_us += 2_000_000
    assert await ran_here(quick)
    assert await ran_here(quick)
    await store.close()


# Several loops, and the end


async def test_lone_calls_of_many_loops_are_each_answered_and_written_once(threaded: SqliteStore):
    async def write(name: int) -> None:
        for n in range(40):
            assert await threaded.writer.gather(ADDING, [f"{name}-{n}"]) == [f"noted {name}-{n}"]

    async with asyncio.timeout(3 * PATIENCE_SECONDS):
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, write(name)) for name in range(4)), write(9))
    written = [f"{name}-{n}" for name in (0, 1, 2, 3, 9) for n in range(40)]
    assert sorted(await read_notes(threaded)) == sorted(written)


async def test_a_loop_that_stops_before_it_has_looked_keeps_nobody_waiting(threaded: SqliteStore):
    await alone(threaded)
    stopped = asyncio.new_event_loop()

    async def leave() -> None:
        threaded.writer.gather(ADDING, ["left"])
        stopped.call_soon = lambda *_, **__: None  # type: ignore[method-assign,assignment,return-value]

    def run_half() -> None:
        asyncio.set_event_loop(stopped)
        task = stopped.create_task(leave())
        stopped.call_soon(stopped.stop)
        stopped.run_forever()
        assert task.done()

    await asyncio.to_thread(run_half)
    assert await threaded.writer.gather(ADDING, ["b"]) == ["noted b"]
    assert await read_notes(threaded) == ["left", "b"]
    stopped.close()


async def test_a_call_between_its_loops_look_and_the_close_of_another_is_refused_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), synchronous="NORMAL")
    await make_table(store)
    await alone(store)
    taken, closed = threading.Event(), threading.Event()
    flush_at_once = store.writer.commits.flush_at_once

    def flush_late(call: Any, along: Any) -> bool:
        taken.set()
        assert closed.wait(PATIENCE_SECONDS)
        return flush_at_once(call, along)

    monkeypatch.setattr(store.writer.commits, "flush_at_once", flush_late)

    async def ask() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await store.writer.gather(ADDING, ["late"])

    asking = asyncio.create_task(asyncio.to_thread(asyncio.run, ask()))
    await asyncio.to_thread(taken.wait, PATIENCE_SECONDS)
    await store.close()
    closed.set()
    with pytest.raises(Misuse, match="closed"):
        await asking


async def test_a_store_that_closes_while_others_write_answers_or_refuses_every_call(tmp_path: Path):
    for round in range(5):
        store = await SqliteStore.open(str(tmp_path / f"{round}.db"), synchronous="OFF")
        await make_table(store)
        acknowledged: list[str] = []

        async def write(name: int, store: SqliteStore, acknowledged: list[str]) -> None:
            for n in range(100_000):
                try:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        await store.writer.gather(ADDING, [f"{name}-{n}"])
                except Misuse:
                    return
                acknowledged.append(f"{name}-{n}")

        writing = [
            asyncio.create_task(asyncio.to_thread(asyncio.run, write(name, store, acknowledged))) for name in range(3)
        ]
        await until(lambda acknowledged=acknowledged: len(acknowledged) > 20)  # type: ignore[misc]
        await store.close()
        await asyncio.gather(*writing)
        again = await SqliteStore.open(store.path)
        assert set(acknowledged) <= set(await read_notes(again))
        await again.close()


FORK_BEFORE_THE_LOOK = """
async def write(store, name):
    await store.writer.gather(ADDING, [name])
    await store.close()

async def main():
    store = await SqliteStore.open(path)
    await make_table(store)
    while not store.writer._backlog._idle:
        await asyncio.sleep(0.001)
    answer = store.writer.gather(ADDING, ["parent"])
    child = os.fork()
    if child == 0:
        # The look at what gathered is among what this loop does next, in the child too.
        for _ in range(3):
            await asyncio.sleep(0)
        asyncio.events._set_running_loop(None)
        asyncio.run(write(store, "child"))
        os._exit(0)
    await answer
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), sorted(await read_notes(store)))
    await store.close()

asyncio.run(main())
"""


def test_a_fork_between_a_call_and_its_flush_writes_it_once(tmp_path: Path):
    assert finish(start(FORK_BEFORE_THE_LOOK, tmp_path / "perdure.db")) == "0 ['child', 'parent']\n"


async def test_an_interrupt_just_after_the_beginning_of_a_commit_leaves_no_transaction_and_no_caller_behind(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    """As by Ctrl-C: the handler of a signal raises on the main thread, between two lines of ours."""
    await make_table(threaded)
    await alone(threaded)

    class Interrupted(BaseException):
        pass

    def interrupted(*_: Any) -> None:
        monkeypatch.undo()
        raise Interrupted

    monkeypatch.setattr(threaded.writer.commits, "_run_and_commit", interrupted)
    answer = threaded.writer.gather(ADDING, ["kept"])
    with pytest.raises(Interrupted):
        threaded.writer._look_at_backlog(asyncio.get_running_loop())
    assert await answer == ["noted kept"]
    assert await read_notes(threaded) == ["kept"]
