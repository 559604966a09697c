"""A checkpoint is made when nobody has written for a moment: whoever writes meanwhile waits for it."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from backends.sqlite.notes import ADDING
from backends.sqlite.test_flushing_at_once import PATIENCE_SECONDS, until
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.wal import CUT_RETRY_US, WriteAheadLog


class Checkpoints:
    """A store's checkpoints, each noted; and whether anybody has written just now, as a test says."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = threading.Event()
        self.quiet = False
        self._commits = commits = store.writer.commits
        after_flush = commits.after_flush

        def note() -> None:
            if commits.checkpoint_due:
                after_flush()
                self.made.set()

        monkeypatch.setattr(commits, "after_flush", note)
        monkeypatch.setattr(commits, "quiet_in_us", lambda: 0 if self.quiet else 1_000)

    async def write_until(self, store: SqliteStore, holds: Callable[[], bool]) -> None:
        """Write notes, one by one."""
        for _ in range(1_000):
            if holds():
                return
            await store.writer.gather(ADDING, ["a note" * 8_000])
        raise AssertionError("it never came")


async def test_a_checkpoint_waits_until_nobody_writes(threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    checkpoints, commits = Checkpoints(threaded, monkeypatch), threaded.writer.commits
    await checkpoints.write_until(threaded, lambda: commits.checkpoint_due)
    assert not await asyncio.to_thread(checkpoints.made.wait, 0.05)
    checkpoints.quiet = True
    assert await asyncio.to_thread(checkpoints.made.wait, PATIENCE_SECONDS)
    await until(lambda: not commits.checkpoint_due)


async def test_a_checkpoint_waits_no_longer_once_the_log_is_twice_as_long(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    checkpoints, commits = Checkpoints(threaded, monkeypatch), threaded.writer.commits
    await checkpoints.write_until(threaded, lambda: commits.checkpoint_pressing or checkpoints.made.is_set())
    assert await asyncio.to_thread(checkpoints.made.wait, PATIENCE_SECONDS)
    await until(lambda: not commits.checkpoint_due)


async def test_a_checkpoint_that_cannot_be_made_is_not_tried_again_and_again(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    commits, tries = threaded.writer.commits, list[int]()
    monkeypatch.setattr(WriteAheadLog, "checkpoint", lambda *_: tries.append(1))
    checkpoints = Checkpoints(threaded, monkeypatch)
    await checkpoints.write_until(threaded, lambda: commits.checkpoint_due)
    commits.after_flush()
    monkeypatch.undo()
    assert commits.quiet_in_us() > CUT_RETRY_US // 2
    assert threaded.writer._patience() > 0.5  # type: ignore[operator]
    assert tries
