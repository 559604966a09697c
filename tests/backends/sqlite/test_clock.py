"""The store's time: what moves it and what does not."""

import asyncio
from pathlib import Path

import apsw
import pytest

from backends.sqlite.fixed_clock import SECOND_US, FixedClock
from backends.sqlite.test_flushing_at_once import PATIENCE_SECONDS, alone, left_to_the_thread
from perdure.domain.limits import LEASE_DEFAULT_US
from perdure.store.relational.operation import Operation
from perdure.store.sqlite.lock import FileLock
from perdure.store.sqlite.store import SqliteStore

NOTHING = Operation("nothing", 0, lambda tx, items: items)


async def now_of(path: Path, clock: FixedClock, write: bool = False) -> tuple[int, int]:
    """The store's now, and until when nothing is declared lost, as a process sees that opens the file now."""
    store = await SqliteStore.open(str(path), clock=clock, inline=True, synchronous="OFF")
    if write:
        await store.writer.gather(NOTHING, [1])
    now_us = await store.readers.read(lambda tx: tx.now_us)
    suspended = await store.readers.read(
        lambda tx: next(
            iter(tx.connection.execute("SELECT value FROM perdure_meta WHERE key = 'losses_suspended_until_us'"))
        )[0]
    )
    await store.close()
    return now_us, suspended


async def test_a_new_store_takes_the_wall_clock_and_suspends_nothing(tmp_path: Path):
    clock = FixedClock()
    assert await now_of(tmp_path / "perdure.db", clock) == (clock.wall, 0)


async def test_time_goes_on_with_the_machine(tmp_path: Path):
    clock = FixedClock()
    before, _ = await now_of(tmp_path / "perdure.db", clock)
    clock.advance(90 * SECOND_US)
    after, suspended = await now_of(tmp_path / "perdure.db", clock)
    assert (after - before, suspended) == (90 * SECOND_US, 0)


async def test_a_step_of_the_wall_clock_changes_nothing_while_the_machine_runs(tmp_path: Path):
    clock = FixedClock()
    before, _ = await now_of(tmp_path / "perdure.db", clock)
    for step in (3600 * SECOND_US, -7200 * SECOND_US):
        clock.wall += step
        assert await now_of(tmp_path / "perdure.db", clock) == (before, 0)


async def test_a_restart_of_the_machine_anchors_anew_and_suspends_losses_for_a_lease(tmp_path: Path):
    clock = FixedClock()
    before, _ = await now_of(tmp_path / "perdure.db", clock)
    clock.restart(before + 500 * SECOND_US)
    assert await now_of(tmp_path / "perdure.db", clock) == (
        before + 500 * SECOND_US,
        before + 500 * SECOND_US + LEASE_DEFAULT_US,
    )


async def test_a_restart_with_a_clock_that_is_behind_never_steps_back(tmp_path: Path):
    clock = FixedClock()
    await now_of(tmp_path / "perdure.db", clock)
    clock.advance(3600 * SECOND_US)
    before, _ = await now_of(tmp_path / "perdure.db", clock, write=True)
    clock.restart(0)
    after, _ = await now_of(tmp_path / "perdure.db", clock)
    assert before < after <= before + SECOND_US


async def test_a_restart_with_a_clock_that_is_behind_comes_after_what_was_written_without_a_note(tmp_path: Path):
    clock = FixedClock()
    await now_of(tmp_path / "perdure.db", clock)
    clock.advance(3600 * SECOND_US)
    await now_of(tmp_path / "perdure.db", clock, write=True)
    clock.advance(SECOND_US - 1)
    written, _ = await now_of(tmp_path / "perdure.db", clock, write=True)
    clock.restart(0)
    after, _ = await now_of(tmp_path / "perdure.db", clock)
    assert after > written


async def test_a_boot_clock_that_went_back_under_the_same_name_is_a_restart(tmp_path: Path):
    clock = FixedClock()
    clock.start = "unknown"
    before, _ = await now_of(tmp_path / "perdure.db", clock)
    clock.wall, clock.boot = before + 10 * SECOND_US, SECOND_US
    after, suspended = await now_of(tmp_path / "perdure.db", clock)
    assert after == before + 10 * SECOND_US
    assert suspended == after + LEASE_DEFAULT_US


async def test_a_longer_suspension_is_not_shortened_by_a_restart(tmp_path: Path):
    clock = FixedClock()
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), clock=clock, inline=True)
    far = clock.wall + 10 * LEASE_DEFAULT_US
    await store.ledger.suspend_losses(far)
    await store.close()
    clock.restart(clock.wall + SECOND_US)
    _, suspended = await now_of(tmp_path / "perdure.db", clock)
    assert suspended == far


async def test_a_suspension_moves_no_time(tmp_path: Path):
    clock = FixedClock()
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), clock=clock, inline=True)
    await store.ledger.suspend_losses(clock.wall + 10 * LEASE_DEFAULT_US)
    await store.close()
    clock.restart(clock.wall + SECOND_US)
    after, _ = await now_of(tmp_path / "perdure.db", clock)
    assert after <= clock.wall


async def test_the_suspension_after_a_restart_moves_no_time(tmp_path: Path):
    clock = FixedClock()
    await now_of(tmp_path / "perdure.db", clock)
    clock.restart(clock.wall + SECOND_US)
    first, suspended = await now_of(tmp_path / "perdure.db", clock)
    assert (first, suspended) == (clock.wall, clock.wall + LEASE_DEFAULT_US)
    assert await now_of(tmp_path / "perdure.db", clock) == (first, suspended)
    clock.restart(clock.wall + SECOND_US)
    assert (await now_of(tmp_path / "perdure.db", clock))[0] == clock.wall


async def test_an_instant_is_taken_once_nobody_else_writes(threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    """So a start counts from then at a rate, however long it was waited for the file."""
    telling = Operation("tell", 0, lambda tx, items: [tx.now_us] * len(items))
    begun = left_to_the_thread(threaded, monkeypatch)
    lock, connection = FileLock(threaded.path, 1.0), apsw.Connection(threaded.path)
    for take, let_go in (
        (lock.acquire, lock.release),
        (lambda: connection.execute("BEGIN IMMEDIATE"), lambda: connection.execute("ROLLBACK")),
    ):
        begun.clear()
        take()
        await alone(threaded)
        answer = asyncio.ensure_future(threaded.writer.gather(telling, [1]))
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        let_go_us = await threaded.readers.read(lambda tx: tx.now_us)
        let_go()
        assert await answer >= [let_go_us]
    lock.close()
    connection.close()
