"""What PostgreSQL reports, as the errors of perdure: which of them are the item's fault, and which the store's."""

import psycopg
from psycopg import errors

from perdure.errors import (
    Invalid,
    PerdureError,
    SchemaTooOld,
    StoreBusy,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    StoreUnusable,
    TooLarge,
    Unavailable,
)

DATA_FAULTS: tuple[type[Exception], ...] = (
    psycopg.DataError,
    psycopg.IntegrityError,
    errors.ProgramLimitExceeded,
    errors.StatementTooComplex,
    OverflowError,
    UnicodeError,
)
"""An item at fault: the same transaction without it would have worked."""

RETRIED: tuple[type[Exception], ...] = (errors.SerializationFailure, errors.DeadlockDetected)
"""Nobody's fault: the whole transaction is run again."""

STALE: tuple[type[Exception], ...] = (errors.ReadOnlySqlTransaction, errors.FeatureNotSupported)
"""What this session cannot do and another may: its server has become a standby, or its prepared statements are of an
older schema.
"""


def is_of_session(error: BaseException) -> bool:
    """Whether another session may do what this one could not.

    Behind a pooler the connection stays when the server's end of it has gone: that comes as an answer, and sometimes as
    one more answer than was asked for.
    """
    if isinstance(error, STALE):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InternalError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_SESSION_GONE)


_STORE_FAULTS: tuple[type[Exception], ...] = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.InternalError,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.InsufficientPrivilege,
    errors.FeatureNotSupported,
    Unavailable,
    StoreUnusable,
    OSError,
    MemoryError,
)

_BUSY: tuple[type[Exception], ...] = (errors.LockNotAvailable, errors.QueryCanceled)
_CROWDED: tuple[type[Exception], ...] = (errors.TooManyConnections, errors.ConfigurationLimitExceeded)
_SESSION_GONE = ("08", "57P", "25P03", "40003")
"""How their states begin. 40003: the server does not know whether a commit was done, as when its answer is lost."""
_GONE = ("08", "57")
"""Classes of states in which the connection or the server has gone away."""


def is_store_fault(error: BaseException) -> bool:
    """Whether no item of the flush could have been written."""
    return isinstance(error, _STORE_FAULTS) and not isinstance(error, DATA_FAULTS)


def translate(error: BaseException, place: str) -> BaseException:
    """The error of perdure for what was raised beneath. What is not the store's or an item's fault stays as it is.

    `place` is where the store is, without a password.
    """
    if isinstance(error, PerdureError):
        return error
    if isinstance(error, DATA_FAULTS):
        translated = _data_fault(error)
    elif isinstance(error, _STORE_FAULTS):
        translated = _store_fault(error, place)
    else:
        return error
    translated.__cause__ = error
    return translated


def told(error: BaseException) -> str:
    """What the server said, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _data_fault(error: BaseException) -> PerdureError:
    if isinstance(error, errors.ProgramLimitExceeded):
        return TooLarge(f"PostgreSQL cannot store a value of that size ({told(error)})", cause=told(error))
    return Invalid(f"the store refused the values: {told(error)}", cause=told(error))


def _store_fault(error: BaseException, place: str) -> PerdureError:
    facts = {"store": place, "cause": told(error)}
    state = getattr(error, "sqlstate", None) or ""
    if isinstance(error, errors.DiskFull):
        return StoreFull(f"no space is left for {place}: free some on the server, then try again", **facts)
    if isinstance(error, errors.ReadOnlySqlTransaction) or "during recovery" in str(error):
        return StoreReadOnly(
            f"{place} takes no writes ({told(error)}): name the primary server, and look at "
            "default_transaction_read_only",
            **facts,
        )
    if isinstance(error, RETRIED):
        return StoreBusy(
            f"too many transactions met on the same rows of {place}, time and again ({told(error)}): try again later, "
            "with smaller batches, or at read committed if it was serializable",
            **facts,
        )
    if isinstance(error, _BUSY):
        return StoreBusy(
            f"{place} did not get to it in time ({told(error)}); look in pg_stat_activity for a transaction that was "
            "left open, then try again",
            **facts,
        )
    if isinstance(error, _CROWDED):
        return crowded(error, place)
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return SchemaTooOld(f"{place} lacks perdure's schema ({told(error)}): run `perdure db migrate`", **facts)
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreUnusable(
            f"the role may not do that on {place} ({told(error)}): grant it SELECT, INSERT, UPDATE and DELETE on "
            "perdure's tables and USAGE on its sequences",
            **facts,
        )
    if isinstance(error, psycopg.OperationalError) and (not state or state.startswith(_GONE)):
        return StoreUnreachable(f"{place} has gone away ({told(error)}); it is tried again with the next call", **facts)
    if isinstance(error, MemoryError | errors.OutOfMemory):
        return StoreFailed(f"no memory is left for {place}", **facts)
    return StoreFailed(
        f"{place} failed ({told(error)}): look at the server's log; nothing of this write was acknowledged", **facts
    )


def crowded(error: BaseException, place: str) -> StoreBusy:
    """The server has no connection left."""
    return StoreBusy(
        f"{place} has no connection left ({told(error)}): raise max_connections, or put a pooler before it",
        store=place,
        cause=told(error),
    )
