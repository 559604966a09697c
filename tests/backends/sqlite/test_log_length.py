"""The log is made longer ahead of small commits, never at somebody else's cost, and SQLite does not mind."""

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from backends.sqlite.notes import ADDING, make_table, read_notes
from backends.sqlite.test_flushing_at_once import until
from perdure.store.sqlite.log_length import (
    BEGINNING_PAGES,
    FRAME_BYTES,
    LENGTH_BYTES,
    PAGE_BYTES,
    SMALL_PAGES,
    STEP_BYTES,
)
from perdure.store.sqlite.store import SqliteStore

A_STEP = BEGINNING_PAGES // (SMALL_PAGES // 2) + 1
"""So many notes, one by one, are more than is logged before the first step."""


@pytest.fixture
async def synced(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open store with a table of notes and a writer's thread, whose commits are synced."""
    opened = await SqliteStore.open(str(tmp_path / "perdure.db"))
    await make_table(opened)
    yield opened
    await opened.close()


def length(store: SqliteStore) -> int:
    return os.path.getsize(f"{store.path}-wal")


def used(store: SqliteStore) -> int:
    return store.writer.commits.logged_pages * FRAME_BYTES


async def note(store: SqliteStore, count: int) -> None:
    """Commits that are small, and as large as that allows."""
    for n in range(count):
        await store.writer.gather(ADDING, [f"note {n}" + "x" * PAGE_BYTES * (SMALL_PAGES // 2)])


async def until_long_enough(store: SqliteStore) -> None:
    """Until the writer's thread has made the step that is due, if any."""
    commits = store.writer.commits
    await until(lambda: not commits.log_short)
    # It is not due any more when it begins, and then it has its turn.
    await asyncio.to_thread(commits._in_turn, lambda: None)


async def test_small_commits_find_the_log_long_enough(synced: SqliteStore):
    await note(synced, A_STEP)
    lengths = set[int]()
    while not synced.writer.commits.checkpoint_due:
        await until_long_enough(synced)
        lengths.add(length(synced))
        before = length(synced)
        await note(synced, 2)
        assert used(synced) < before
    assert len(lengths) > 3


async def test_a_log_has_an_end(synced: SqliteStore):
    commits = synced.writer.commits
    for _ in range(LENGTH_BYTES // STEP_BYTES + 3):
        commits._wal._length.short = True
        commits.lengthen_log()
    assert LENGTH_BYTES - STEP_BYTES < length(synced) <= LENGTH_BYTES


async def test_what_a_crash_leaves_is_read_back(synced: SqliteStore, tmp_path: Path):
    await note(synced, A_STEP)
    await until_long_enough(synced)
    assert length(synced) >= used(synced) + STEP_BYTES // 2
    crashed = tmp_path / "crashed.db"
    for part in ("", "-wal"):
        shutil.copy(f"{synced.path}{part}", f"{crashed}{part}")
    with contextlib.closing(apsw.Connection(str(crashed))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY n")] == await read_notes(synced)


async def test_who_stores_little_makes_no_step(synced: SqliteStore):
    await note(synced, 3)
    assert not synced.writer.commits.log_short
    assert length(synced) < used(synced) + STEP_BYTES // 2


async def test_large_commits_make_no_step(synced: SqliteStore):
    for _ in range(5):
        await synced.writer.gather(ADDING, ["x" * PAGE_BYTES * (SMALL_PAGES + 1)])
        assert not synced.writer.commits.log_short


async def test_commits_that_are_not_synced_make_no_step(threaded: SqliteStore):
    await note(threaded, A_STEP)
    assert not threaded.writer.commits.log_short
    assert length(threaded) < used(threaded) + STEP_BYTES // 2


def _refuse(descriptor: int, data: bytes, offset: int) -> int:
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def _in_part(write: Any) -> Any:
    return lambda descriptor, data, offset: write(descriptor, data[: len(data) // 2], offset)


@pytest.mark.parametrize("partly", [False, True])
async def test_a_full_disk_gets_back_what_a_step_took(
    synced: SqliteStore, monkeypatch: pytest.MonkeyPatch, partly: bool
):
    tries = list[int]()
    write = _in_part(os.pwrite) if partly else _refuse

    def attempt(descriptor: int, data: bytes, offset: int) -> int:
        tries.append(offset)
        return int(write(descriptor, data, offset))

    monkeypatch.setattr(os, "pwrite", attempt)
    await note(synced, A_STEP)
    await until_long_enough(synced)
    await note(synced, A_STEP)
    assert len(tries) == 1
    assert length(synced) < used(synced) + STEP_BYTES // 4
    assert len(await read_notes(synced)) == 2 * A_STEP


async def test_little_space_is_left_to_others(synced: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: SimpleNamespace(f_bavail=1_000, f_frsize=4096))
    await note(synced, A_STEP)
    await until_long_enough(synced)
    assert length(synced) < used(synced) + STEP_BYTES // 4


async def test_nothing_is_appended_while_another_program_writes(synced: SqliteStore):
    commits = synced.writer.commits
    commits._wal._length.short = True
    before = length(synced)
    with contextlib.closing(apsw.Connection(synced.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        commits.lengthen_log()
        assert length(synced) == before
        assert not commits.connected().in_transaction
        other.execute("ROLLBACK")
    await note(synced, A_STEP)
    await until_long_enough(synced)
    assert length(synced) > used(synced) + STEP_BYTES // 4


async def test_a_log_that_was_cut_is_made_longer_again(synced: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    await note(synced, A_STEP)
    await until_long_enough(synced)
    commits = synced.writer.commits
    monkeypatch.setattr("perdure.store.sqlite.wal.CUT_FROM_PAGES", 1)
    commits._in_turn(lambda: commits._wal.checkpoint(commits.connected()))
    monkeypatch.undo()
    assert length(synced) == 0
    await note(synced, A_STEP)
    await until_long_enough(synced)
    assert length(synced) > used(synced) + STEP_BYTES // 4
