"""The log beside the file: told of when an old snapshot keeps it, moved into the file when space is short."""

import asyncio
import logging
import os

import apsw
import pytest

from backends.sqlite.notes import ADDING
from perdure.errors import StoreFull
from perdure.store.sqlite import wal
from perdure.store.sqlite.store import SqliteStore

TEXT = "x" * 1_000_000


async def fill(store: SqliteStore, megabytes: int) -> None:
    for n in range(megabytes):
        await store.writer.gather(ADDING, [f"{n}{TEXT}"])


async def test_a_log_that_a_held_snapshot_keeps_is_told_of_until_it_is_short_again(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wal, "LONG_BYTES", 8_000_000)
    monkeypatch.setattr(wal, "PASSIVE_EVERY_PAGES", 500)
    monkeypatch.setattr(wal, "CUT_FROM_PAGES", 1_000)
    monkeypatch.setattr(wal, "CUT_RETRY_US", 0)
    caplog.set_level(logging.WARNING, "perdure.store")
    await fill(threaded, 1)
    assert threaded.notices() == []
    with_snapshot = apsw.Connection(threaded.path, flags=apsw.SQLITE_OPEN_READONLY)
    with_snapshot.execute("BEGIN")
    with_snapshot.execute("SELECT count(*) FROM notes").fetchall()
    await fill(threaded, 20)
    await threaded.writer.gather(ADDING, ["the checkpoint of the flush before is over"])
    [notice] = threaded.notices()
    assert "old snapshot" in notice
    assert threaded.path not in notice
    [line] = [record for record in caplog.records if record.name == "perdure.store"]
    assert threaded.path in line.getMessage()

    with_snapshot.close(True)
    async with asyncio.timeout(20):
        while threaded.notices():
            await threaded.writer.gather(ADDING, ["a little"])


async def test_a_full_disk_has_the_log_moved_into_the_file_however_short_it_is(store: SqliteStore) -> None:
    await store.writer.gather(ADDING, ["kept"])
    before = os.stat(store.path).st_size
    connection = store.writer.commits.connected()
    connection.pragma("max_page_count", connection.pragma("page_count"))
    with pytest.raises(StoreFull):
        await fill(store, 1)
    # The writer's thread moves the log meanwhile, on the same connection.
    with store.writer.commits._flushing:
        connection.pragma("max_page_count", 2**30)
    async with asyncio.timeout(20):
        while os.stat(store.path).st_size == before:
            await asyncio.sleep(0.01)
    await fill(store, 1)
    assert os.stat(store.path).st_size > before
