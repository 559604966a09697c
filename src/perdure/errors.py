"""What can go wrong, as one tree.

    PerdureError
    ├── Refused                     the request is at fault; nothing was stored
    │   ├── Malformed        400    it cannot be parsed: bad id, bad JSON, bad cursor
    │   ├── Invalid          422    it parses and breaks a rule; `field` says where
    │   ├── TooLarge         413    a body is over its limit
    │   ├── NotFound         404    no such task, job, queue, worker
    │   ├── Conflict         409    it contradicts what is stored
    │   │   ├── IdempotencyConflict    same key, another request
    │   │   ├── UniqueConflict         another task holds the key of a unique one
    │   │   ├── Redacted               a redrive needs a new payload
    │   │   └── LeaseLost              this attempt may not write any more
    │   ├── PreconditionFailed 412  a document says something else than was expected; `etag` is its tag
    │   ├── AlreadyEnded     410    the task has ended; `state` says how
    │   └── Overloaded       429    a queue or organization is at its depth; `retry_after` in seconds
    ├── Unavailable                 the store is at fault; the same request may work later
    │   ├── StoreUnreachable 503    it cannot be opened or has gone away
    │   ├── StoreBusy        503    a lock was not had in time
    │   ├── StoreFull        507    no space left
    │   ├── StoreReadOnly    503    it may not be written
    │   └── StoreFailed      503    an input or output error: nothing of the write may be trusted
    ├── StoreUnusable        503    it can be opened and must not be used; a person has to act
    │   ├── UnsafeStore             a SQLite with the WAL-reset corruption, a network filesystem
    │   ├── SchemaTooNew            written by a later perdure
    │   ├── SchemaTooOld            `perdure db migrate` is due
    │   └── UnfinishedCopy          a copy that was interrupted; the message says what goes on
    ├── Misuse               500    the program is at fault: a kind registered twice, a closed app
    ├── TaskFailed           -      raised by `result()`: the task ended without a result
    ├── JobFailed            -      raised by `result()` of a job: it ended failed or cancelled
    ├── WaitTimedOut         -      raised by `result(timeout=...)`: the task goes on
    ├── IllegalTransition    500    a move that the lifecycle does not have; a defect of perdure
    └── InvariantBroken      500    something that must always hold did not; a defect of perdure

Every class has a `code`, a `status` for HTTP and an `exit_code` for the CLI; every instance has `fields`.
"""

from typing import Any, ClassVar, NoReturn


class PerdureError(Exception):
    """The root of the tree: `code` names the class for machines, `fields` carry the facts."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (type(self), self.message, self.fields)


def rebuilt(cls: type[PerdureError], message: str, fields: dict[str, Any]) -> PerdureError:
    """An error of a class, whatever that class's own constructor takes."""
    error = cls.__new__(cls)
    PerdureError.__init__(error, message, **fields)
    return error


class Refused(PerdureError):
    """The request is at fault; nothing was stored."""

    code = "refused"
    status = 400
    exit_code = 2


class Malformed(Refused):
    """The request cannot be parsed: a bad id, bad JSON, a bad cursor."""

    code = "malformed"
    status = 400


class Invalid(Refused):
    """The request parses and breaks a rule; `field` names the place."""

    code = "invalid"
    status = 422


class TooLarge(Refused):
    """A body is over its limit; `limit_bytes` and `actual_bytes` tell both."""

    code = "too_large"
    status = 413


class NotFound(Refused):
    """There is no such thing here; `what` and `id` name it."""

    code = "not_found"
    status = 404


class Conflict(Refused):
    """The request contradicts what is stored."""

    code = "conflict"
    status = 409


class IdempotencyConflict(Conflict):
    """The idempotency key was used for another request; `task_id` or `job_id` is what it made."""

    code = "idempotency_conflict"


class UniqueConflict(Conflict):
    """Another task holds the key of a unique task; `task_id` and `state` tell which one and how it stands."""

    code = "unique_conflict"


class Redacted(Conflict):
    """The payload is gone; a redrive needs a new one."""

    code = "redacted"


class LeaseLost(Conflict):
    """This attempt does not hold the task any more. Stop; whatever it wrote was refused."""

    code = "lease_lost"


class PreconditionFailed(Refused):
    """A document is not what the request expects; `etag` names what it says now."""

    code = "precondition_failed"
    status = 412


class AlreadyEnded(Refused):
    """The task has ended; `state` and `reason` tell how."""

    code = "already_ended"
    status = 410


class Overloaded(Refused):
    """A queue or organization is at its depth; try again in `retry_after` seconds."""

    code = "overloaded"
    status = 429
    exit_code = 1


class Unavailable(PerdureError):
    """The store is at fault; the same request may work later."""

    code = "unavailable"
    status = 503
    exit_code = 3


class StoreUnreachable(Unavailable):
    """The store cannot be opened, or it has gone away."""

    code = "store_unreachable"


class StoreBusy(Unavailable):
    """A lock on the store was not had in time."""

    code = "store_busy"


class StoreFull(Unavailable):
    """No space is left for the store. Acknowledged work is safe; new writes are refused until there is space."""

    code = "store_full"
    status = 507


class StoreReadOnly(Unavailable):
    """The store may not be written by this process."""

    code = "store_read_only"


class StoreFailed(Unavailable):
    """Reading or writing failed underneath; nothing of that write was acknowledged."""

    code = "store_failed"


class StoreUnusable(PerdureError):
    """The store can be opened and must not be used; a person has to act."""

    code = "store_unusable"
    status = 503
    exit_code = 3


class UnsafeStore(StoreUnusable):
    """Using it could corrupt it: a SQLite with the WAL-reset defect, or a network filesystem."""

    code = "unsafe_store"


class SchemaTooNew(StoreUnusable):
    """It was written by a later perdure."""

    code = "schema_too_new"


class SchemaTooOld(StoreUnusable):
    """Its schema is older than this perdure; `perdure db migrate` is due."""

    code = "schema_too_old"


class UnfinishedCopy(StoreUnusable):
    """Only a part of another store has been copied to it; `origin` tells of which one."""

    code = "unfinished_copy"


class Misuse(PerdureError):
    """The calling program is at fault."""

    code = "misuse"
    exit_code = 2


class TaskFailed(PerdureError):
    """The task ended without a result; `task_id`, `state`, `reason` and the handler's `error` tell how."""

    code = "task_failed"


class JobFailed(PerdureError):
    """The job ended failed or cancelled; `job_id`, `state` and `names` of the tasks that failed tell how."""

    code = "job_failed"


class WaitTimedOut(PerdureError):
    """The wait is over, the task goes on."""

    code = "wait_timed_out"


class IllegalTransition(PerdureError):
    """A move that the lifecycle does not have. Please report it: it is a defect of perdure."""

    code = "illegal_transition"

    def __init__(self, source: str | None, event: str, target: str) -> None:
        super().__init__(
            f"the lifecycle has no move from {source or 'nothing'} by {event} to {target}",
            source=source,
            event=event,
            target=target,
        )


class InvariantBroken(PerdureError):
    """Something that must always hold did not. Please report it: it is a defect of perdure."""

    code = "invariant_broken"


def invariant(condition: object, fact: str) -> None:
    """Raise `InvariantBroken` unless `condition` holds. It survives `python -O`."""
    if not condition:
        _break(fact)


def _break(fact: str) -> NoReturn:
    raise InvariantBroken(f"broken invariant: {fact}", fact=fact)
