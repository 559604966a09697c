"""Opening the file: what must be true of it, of its place and of SQLite before anything is written."""

import os
from importlib.resources import files
from pathlib import Path

import apsw

from perdure.errors import StoreReadOnly, StoreUnreachable, UnsafeStore
from perdure.store.sqlite.faults import translate

MEMORY = ":memory:"

WORKING_TABLES = files("perdure.store.sqlite") / "working_tables.sql"
"""Temporary tables that operations stage their rows in; made once for each connection that writes."""

STATEMENT_CACHE = 256
"""Prepared statements kept by each connection: more than there are files in `sql/` that a connection runs."""
PAGE_CACHE_KIB = 16 * 1024
JOURNAL_KEPT_BYTES = 16 * 1024 * 1024
"""The write-ahead log is cut down to this when it starts over."""

_DEFECT_SINCE = (3, 7, 0)
_DEFECT_FIXED = (3, 51, 3)
_BACKPORTS = {(3, 50): 7, (3, 44): 6}
"""Releases of older lines that have the fix, by line: the first good patch."""

NETWORK_FILESYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs2",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "smb3",
        "smbfs",
    }
)
NETWORK_FUSE = ("ceph", "davfs", "gcsfuse", "glusterfs", "rclone", "s3fs", "smb", "sshfs", "juicefs", "goofys")


def absolute(path: str | os.PathLike[str]) -> str:
    """The path for good: the file is opened again later, whatever the working directory is by then."""
    text = os.fspath(path)
    return text if text == MEMORY else os.path.abspath(text)


def check_version(version: str) -> None:
    """Refuse a SQLite with the WAL-reset defect (3.7.0 to 3.51.2). Raises `UnsafeStore`."""
    numbers = tuple(int(part) for part in version.split(".")[:3])
    if numbers < _DEFECT_SINCE or numbers >= _DEFECT_FIXED:
        return
    good_patch = _BACKPORTS.get((numbers[0], numbers[1]))
    if good_patch is not None and numbers[2] >= good_patch:
        return
    raise UnsafeStore(
        f"SQLite {version} can corrupt a database in WAL mode that several connections write (fixed in 3.51.3, "
        "3.50.7 and 3.44.6): install a current apsw wheel (`pip install --upgrade apsw`), which brings its own SQLite",
        version=version,
    )


def check_place(path: str, mounts: str | None = None) -> None:
    """Refuse a path where no database can be, or can be safe: each error says what to change.

    Raises `StoreUnreachable`, `StoreReadOnly` or `UnsafeStore`. `mounts` is the text of /proc/self/mountinfo.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise StoreUnreachable(f"{folder} is not a directory: create it, or name another file", path=path)
    if os.path.isdir(path):
        raise StoreUnreachable(f"{path} is a directory: name a file in it, as {path}/perdure.db", path=path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreReadOnly(
            f"{folder} may not be written by this process; SQLite keeps its log and locks beside the file: "
            "change its owner, mode or mount",
            path=path,
        )
    if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
        raise StoreReadOnly(f"{path} may not be written by this process: change its owner or mode", path=path)
    check_filesystem(folder, mounts)


def check_filesystem(folder: str, mounts: str | None = None) -> None:
    """Refuse a network filesystem: locks and shared memory do not hold there. Raises `UnsafeStore`."""
    kind = filesystem(folder, mounts)
    if kind is None or not _is_network(kind):
        return
    raise UnsafeStore(
        f"{folder} is on a network filesystem ({kind}), where SQLite's locks do not hold and the database would be "
        "corrupted: use a local disk, or PostgreSQL for workers on several machines",
        path=folder,
        filesystem=kind,
    )


def _is_network(kind: str) -> bool:
    if kind in NETWORK_FILESYSTEMS:
        return True
    family, _, name = kind.partition(".")
    return family in ("fuse", "fuseblk") and name.startswith(NETWORK_FUSE)


def filesystem(folder: str, mounts: str | None = None) -> str | None:
    """The type of the filesystem that a folder lies on, as the kernel lists its mounts; `None` if it does not say."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    where = os.path.realpath(folder)
    found, longest = None, -1
    for line in mounts.splitlines():
        head, _, tail = line.partition(" - ")
        fields, kinds = head.split(" "), tail.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = _unescaped(fields[4])
        # Of two mounts on one point, the later one covers the earlier.
        if _lies_under(where, point) and len(point) >= longest:
            found, longest = kinds[0], len(point)
    return found


def _lies_under(path: str, point: str) -> bool:
    return path == point or path.startswith(point if point.endswith("/") else point + "/")


def _unescaped(text: str) -> str:
    for code, character in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(code, character)
    return text


def open_writing(path: str, lock_timeout: float) -> apsw.Connection:
    """A connection that writes, in WAL mode, with checkpoints left to us. Call it under the file lock."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=STATEMENT_CACHE)
        try:
            connection.set_busy_timeout(round(lock_timeout * 1000))
            _configure_writing(connection, path)
        except BaseException:
            connection.close()
            raise
    except Exception as error:
        raise translate(error, path) from error
    return connection


def _configure_writing(connection: apsw.Connection, path: str) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if path != MEMORY and mode != "wal":
        raise UnsafeStore(
            f"{path} cannot be put into WAL mode (it stays in {mode!r}): move it to a local disk", path=path
        )
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("journal_size_limit", JOURNAL_KEPT_BYTES)
    _configure(connection)
    # Rows are kept consistent by the operations and tested for it; looking up every parent costs the hot path a third.
    connection.pragma("foreign_keys", 0)
    connection.execute(WORKING_TABLES.read_text(encoding="utf-8"))


def _configure(connection: apsw.Connection) -> None:
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -PAGE_CACHE_KIB)
    # One plan for a statement, whatever is bound: else one that has a range is prepared anew each time it runs.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def open_reading(path: str, lock_timeout: float) -> apsw.Connection:
    """A connection that only reads, of a database that exists."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=STATEMENT_CACHE)
        try:
            connection.set_busy_timeout(round(lock_timeout * 1000))
            _configure(connection)
        except BaseException:
            connection.close()
            raise
    except Exception as error:
        raise translate(error, path) from error
    return connection
