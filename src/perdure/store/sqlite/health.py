"""How a SQLite store is: its file, its log, its disk, its time."""

import os
import shutil
from collections.abc import Callable, Iterator

import apsw

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.errors import UnsafeStore
from perdure.store.health import Fact, Health, clock_difference, copying_from, missing_steps
from perdure.store.sqlite.clock import find_anchor
from perdure.store.sqlite.faults import translate
from perdure.store.sqlite.opening import check_filesystem, check_version, filesystem, open_reading
from perdure.store.sqlite.schema import STATUS_LOCK_TIMEOUT, known_steps, taken_steps
from perdure.store.sqlite.schema import missing_steps as missing_of
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.wal import long_log

FREE_DISK_MIN_BYTES = 1024**3


def examine(path: str, clock: Clock) -> Health:
    """Look at the store in a file that exists. Raises `SchemaTooNew` or one of `Unavailable`."""
    connection = open_reading(path, STATUS_LOCK_TIMEOUT)
    try:
        return Health("sqlite", (*_of_file(path), *_of_database(connection, clock)))
    except (apsw.Error, OSError) as error:
        raise translate(error, path) from error
    finally:
        connection.close()


def _of_file(path: str) -> Iterator[Fact]:
    folder = os.path.dirname(os.path.abspath(path))
    yield Fact("path", os.path.abspath(path))
    version = apsw.sqlite_lib_version()
    yield Fact("sqlite_version", version, _refusal(check_version, version))
    yield Fact("filesystem", filesystem(folder), _refusal(check_filesystem, folder))
    writable = os.access(path, os.W_OK) and os.access(folder, os.W_OK)
    yield Fact(
        "writable", writable, None if writable else f"{path} or its folder may not be written: change owner or mode"
    )
    yield _free_disk(folder)
    yield Fact("database_bytes", os.path.getsize(path))
    yield _log(path)


def _refusal(check: Callable[[str], None], found: str) -> str | None:
    """Why the store would not be opened."""
    try:
        check(found)
    except UnsafeStore as error:
        return error.message
    return None


def _free_disk(folder: str) -> Fact:
    free = shutil.disk_usage(folder).free
    warning = None
    if free < FREE_DISK_MIN_BYTES:
        warning = f"the disk of {folder} is almost full: free some space, or work stops with store_full"
    return Fact("free_disk_bytes", free, warning)


def _log(path: str) -> Fact:
    size = os.path.getsize(path + "-wal") if os.path.exists(path + "-wal") else 0
    return Fact("wal_bytes", size, long_log(path))


def _of_database(connection: apsw.Connection, clock: Clock) -> Iterator[Fact]:
    mode = str(connection.pragma("journal_mode"))
    yield Fact(
        "journal_mode",
        mode,
        None if mode == "wal" else "the file is not in WAL mode: whoever opens it for writing puts it back",
    )
    unused = int(connection.pragma("freelist_count")) * int(connection.pragma("page_size"))
    yield Fact("unused_bytes", unused)
    taken = taken_steps(connection)
    missing = missing_of(taken, known_steps())
    yield Fact("schema_step", max(taken, default=0))
    yield missing_steps([f"{step.number:04d}_{step.name}" for step in missing])
    if taken:
        origins = [origin for (origin,) in connection.execute(STATEMENTS["copy_origin"])]
        yield copying_from(connection.filename, next(iter(origins), None))
    yield clock_difference(_difference(connection, clock) if taken else None)


def _difference(connection: apsw.Connection, clock: Clock) -> float | None:
    """`None` before anybody has opened the store since this machine was started."""
    anchored = find_anchor(connection, clock)
    return None if anchored is None else (anchored.now_us() - clock.wall_us()) / SECOND_US
