"""Whether a commit of ordinary work has room: a page is written for good, then space is asked for.

What is written again and again fits into a log that is there, so it goes well on a full disk too. New work needs pages.
"""

import errno
import os
import tempfile
from typing import Any

from perdure.errors import StoreFull
from perdure.store.relational.operation import Operation
from perdure.store.sqlite.log_length import FRAME_BYTES, PAGE_BYTES
from perdure.store.sqlite.transaction import Transaction

ROOM_BYTES = 256 * 1024
"""What a commit of ordinary work needs at most. It goes to the log, which fills up while the file cannot grow."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def _write(tx: Transaction, items: list[Any]) -> list[Any]:
    tx.run("clock_note")
    return [None for _ in items]


WRITE_A_PAGE = Operation("write_a_page", 9, _write)
"""Notes the time."""


def check_room(path: str, logged_pages: int) -> None:
    """Raises `StoreFull` when neither the disk nor the log that is there has `ROOM_BYTES`, `OSError` for a sick disk.

    `logged_pages`: the part of the log that is in use.
    """
    if _on_disk(os.path.dirname(path)):
        return
    unused = os.path.getsize(f"{path}-wal") // FRAME_BYTES - logged_pages
    if unused * PAGE_BYTES < ROOM_BYTES:
        raise StoreFull(f"no space is left for {path}: free some, then try again", path=path)


def _on_disk(folder: str) -> bool:
    """Whether the file system has the space, for this user: it is taken, and given back at once."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < ROOM_BYTES:
        return False
    if not hasattr(os, "posix_fallocate"):
        return True
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".perdure-room-") as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        if error.errno in _NO_SPACE:
            return False
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
    return True
