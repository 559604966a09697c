"""perdure: durable tasks and jobs for Python, from a SQLite file to a fleet.

    import perdure

    app = perdure.App()

    @app.task("greet")
    async def greet(name: str) -> str:
        return f"Hello, {name}"

Every public name is in `__all__`. They are loaded when they are first used, so that `import perdure` is quick.
"""

import importlib
import importlib.metadata
import typing

if typing.TYPE_CHECKING:
    __version__: str
    from perdure.app.app import App
    from perdure.app.handle import Handle, as_completed, wait_all, wait_any
    from perdure.app.job import JobBuilder
    from perdure.app.job_handle import JobHandle
    from perdure.app.node import Node
    from perdure.app.sync import SyncApp, SyncHandle, SyncJobHandle
    from perdure.app.task import Call, Task
    from perdure.domain.breaker import Breaker
    from perdure.domain.limit import Limit
    from perdure.domain.retry import Retry
    from perdure.domain.states import AttemptState, JobState, Reason, TaskState
    from perdure.domain.unique import SubmitOutcome, Unique
    from perdure.engine.requests import NewTask
    from perdure.errors import (
        AlreadyEnded,
        Conflict,
        IdempotencyConflict,
        Invalid,
        JobFailed,
        LeaseLost,
        Malformed,
        Misuse,
        NotFound,
        Overloaded,
        PerdureError,
        Redacted,
        Refused,
        SchemaTooNew,
        SchemaTooOld,
        StoreBusy,
        StoreFailed,
        StoreFull,
        StoreReadOnly,
        StoreUnreachable,
        StoreUnusable,
        TaskFailed,
        TooLarge,
        Unavailable,
        UnfinishedCopy,
        UniqueConflict,
        UnsafeStore,
        WaitTimedOut,
    )
    from perdure.settings import Settings
    from perdure.worker.context import Context, SyncContext
    from perdure.worker.verdicts import Cancel, Fail, Partly, RetryAfter, Snooze

_HOMES = {
    "perdure.app.app": ("App",),
    "perdure.app.handle": ("Handle", "as_completed", "wait_all", "wait_any"),
    "perdure.app.job": ("JobBuilder",),
    "perdure.app.job_handle": ("JobHandle",),
    "perdure.app.node": ("Node",),
    "perdure.app.sync": ("SyncApp", "SyncHandle", "SyncJobHandle"),
    "perdure.app.task": ("Call", "Task"),
    "perdure.domain.breaker": ("Breaker",),
    "perdure.domain.limit": ("Limit",),
    "perdure.domain.unique": ("SubmitOutcome", "Unique"),
    "perdure.domain.retry": ("Retry",),
    "perdure.domain.states": ("AttemptState", "JobState", "Reason", "TaskState"),
    "perdure.engine.requests": ("NewTask",),
    "perdure.errors": (
        "AlreadyEnded",
        "Conflict",
        "IdempotencyConflict",
        "Invalid",
        "JobFailed",
        "LeaseLost",
        "Malformed",
        "Misuse",
        "NotFound",
        "Overloaded",
        "PerdureError",
        "Redacted",
        "Refused",
        "SchemaTooNew",
        "SchemaTooOld",
        "StoreBusy",
        "StoreFailed",
        "StoreFull",
        "StoreReadOnly",
        "StoreUnreachable",
        "StoreUnusable",
        "TaskFailed",
        "TooLarge",
        "Unavailable",
        "UnfinishedCopy",
        "UniqueConflict",
        "UnsafeStore",
        "WaitTimedOut",
    ),
    "perdure.settings": ("Settings",),
    "perdure.worker.context": ("Context", "SyncContext"),
    "perdure.worker.verdicts": ("Cancel", "Fail", "Partly", "RetryAfter", "Snooze"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AlreadyEnded",
    "App",
    "AttemptState",
    "Breaker",
    "Call",
    "Cancel",
    "Conflict",
    "Context",
    "Fail",
    "Handle",
    "IdempotencyConflict",
    "Invalid",
    "JobBuilder",
    "JobFailed",
    "JobHandle",
    "JobState",
    "LeaseLost",
    "Limit",
    "Malformed",
    "Misuse",
    "NewTask",
    "Node",
    "NotFound",
    "Overloaded",
    "Partly",
    "PerdureError",
    "Reason",
    "Redacted",
    "Refused",
    "Retry",
    "RetryAfter",
    "SchemaTooNew",
    "SchemaTooOld",
    "Settings",
    "Snooze",
    "StoreBusy",
    "StoreFailed",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnreachable",
    "StoreUnusable",
    "SubmitOutcome",
    "SyncApp",
    "SyncContext",
    "SyncHandle",
    "SyncJobHandle",
    "Task",
    "TaskFailed",
    "TaskState",
    "TooLarge",
    "Unavailable",
    "UnfinishedCopy",
    "Unique",
    "UniqueConflict",
    "UnsafeStore",
    "WaitTimedOut",
    "__version__",
    "as_completed",
    "wait_all",
    "wait_any",
]


def __getattr__(name: str) -> typing.Any:
    if name == "__version__":
        return importlib.metadata.version("perdure")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
