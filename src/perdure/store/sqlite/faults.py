"""What SQLite reports, as the errors of perdure: which of them are the item's fault, and which the store's."""

import errno
import os

import apsw

from perdure.errors import (
    Invalid,
    PerdureError,
    StoreBusy,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    StoreUnusable,
    TooLarge,
)

DATA_FAULTS: tuple[type[Exception], ...] = (
    apsw.ConstraintError,
    apsw.TooBigError,
    apsw.MismatchError,
    apsw.RangeError,
    # Values that SQL functions refuse, as malformed JSON.
    apsw.SQLError,
    OverflowError,
    UnicodeError,
)
"""An item at fault: the same transaction without it would have worked."""

STORE_FAULTS: tuple[type[Exception], ...] = (
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ProtocolError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.NoMemError,
    OSError,
    MemoryError,
)
"""The store at fault: no item of the flush could have been written."""

BROKEN: tuple[type[Exception], ...] = (apsw.IOError, apsw.CorruptError, apsw.NotADBError, OSError)
"""After one of these, nothing that the connection remembers can be trusted: it is closed and opened anew."""

SHARED_MEMORY_BYTES = 32 * 1024
"""What SQLite needs beside a database at least, to open it."""


def translate(error: BaseException, path: str) -> BaseException:
    """The error of perdure for what was raised beneath. What is not the store's or an item's fault stays as it is."""
    if isinstance(error, PerdureError):
        return error
    if isinstance(error, STORE_FAULTS):
        translated = _store_fault(error, path)
    elif isinstance(error, DATA_FAULTS):
        translated = _data_fault(error)
    else:
        return error
    translated.__cause__ = error
    return translated


def _finds_no_space(error: Exception, path: str) -> bool:
    """Whether what failed had nowhere to write: SQLite calls it an error of the disk where its shared memory or a
    system call ran out of space.
    """
    if not isinstance(error, apsw.IOError):
        return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    try:
        disk = os.statvfs(os.path.dirname(path) or ".")
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < SHARED_MEMORY_BYTES


def _is_read_only(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EROFS


def _data_fault(error: Exception) -> PerdureError:
    if isinstance(error, apsw.TooBigError):
        return TooLarge(f"SQLite cannot store a value of that size ({error})", cause=str(error))
    return Invalid(f"the store refused the values: {error}", cause=str(error))


def _store_fault(error: Exception, path: str) -> PerdureError:
    facts = {"path": path, "cause": str(error)}
    if isinstance(error, apsw.FullError) or _finds_no_space(error, path):
        return StoreFull(f"no space is left for {path}: free some, then try again", **facts)
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | PermissionError) or _is_read_only(error):
        return StoreReadOnly(f"{path} may not be written by this process: check its owner, mode and mount", **facts)
    if isinstance(error, apsw.BusyError | apsw.LockedError | apsw.ProtocolError):
        return StoreBusy(
            f"{path} is locked by another transaction; look for one that was left open, then try again", **facts
        )
    if isinstance(error, apsw.CantOpenError):
        return StoreUnreachable(f"{path} cannot be opened: check that its directory exists and may be written", **facts)
    if isinstance(error, apsw.NotADBError):
        return StoreUnusable(f"{path} is not an SQLite database; name another file or move it away", **facts)
    if isinstance(error, apsw.CorruptError):
        return StoreUnusable(
            f"{path} is damaged ({error}): stop what uses it, and put back a copy from before that is whole", **facts
        )
    if isinstance(error, apsw.NoMemError | MemoryError):
        return StoreFailed(f"no memory is left for {path}", **facts)
    return StoreFailed(
        f"reading or writing {path} failed ({error}): look at the disk; nothing of this write was acknowledged", **facts
    )
