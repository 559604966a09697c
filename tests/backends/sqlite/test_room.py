"""New work finds room on the disk, or in the log that is there; a proof of that leaves nothing behind."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.sqlite.notes import ADDING
from perdure.errors import StoreFull, StoreReadOnly
from perdure.store.sqlite.room import ROOM_BYTES
from perdure.store.sqlite.store import SqliteStore


def no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=1, f_frsize=4096))


async def test_there_is_room(store: SqliteStore):
    before = set(os.listdir(Path(store.path).parent))
    assert await store.prove_writes()
    assert set(os.listdir(Path(store.path).parent)) == before


async def test_a_full_disk_has_none(store: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    no_space(monkeypatch)
    with pytest.raises(StoreFull):
        await store.prove_writes()


async def test_on_a_full_disk_what_nothing_uses_in_the_log_is_room(store: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    await store.writer.gather(ADDING, [f"{n}" + "x" * 100_000 for n in range(10)])
    no_space(monkeypatch)
    with pytest.raises(StoreFull):
        await store.prove_writes()
    commits = store.writer.commits
    commits._in_turn(lambda: commits._wal.checkpoint(commits.connected()))
    assert await store.prove_writes()


@pytest.mark.parametrize(
    ("number", "told"), [(errno.EDQUOT, StoreFull), (errno.ENOSPC, StoreFull), (errno.EROFS, StoreReadOnly)]
)
async def test_what_the_disk_says_is_told(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, number: int, told: type[Exception]
):
    def refuse(descriptor: int, offset: int, length: int) -> None:
        assert length == ROOM_BYTES
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(told):
        await store.prove_writes()


async def test_a_proof_writes(store: SqliteStore):
    log = Path(f"{store.path}-wal")
    await store.prove_writes()
    pages = store.writer.commits.logged_pages
    await store.prove_writes()
    assert store.writer.commits.logged_pages > pages
    assert log.stat().st_size > 0
