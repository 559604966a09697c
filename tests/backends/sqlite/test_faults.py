"""What SQLite reports, in words that say what to do."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from perdure.errors import StoreFailed, StoreFull, StoreUnusable
from perdure.store.sqlite.faults import translate
from perdure.store.sqlite.store import SqliteStore


@pytest.mark.parametrize(("free_bytes", "told"), [(0, StoreFull), (2**30, StoreFailed)])
def test_an_error_of_the_disk_is_a_full_disk_where_no_space_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_bytes: int, told: type[Exception]
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=free_bytes // 4096, f_frsize=4096))
    assert type(translate(apsw.IOError("disk I/O error"), str(tmp_path / "perdure.db"))) is told


def test_a_system_call_that_found_no_space_is_a_full_disk(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device")
    assert type(translate(error, str(tmp_path / "perdure.db"))) is StoreFull


async def test_a_damaged_file_is_told_as_that_and_not_to_be_used(tmp_path: Path) -> None:
    path = tmp_path / "perdure.db"
    await (await SqliteStore.open(path)).close()
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(StoreUnusable, match="is damaged"):
        await SqliteStore.open(path)
