"""The states of tasks, attempts and jobs, and the reasons for which things end."""

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task is in its life."""

    PENDING = "pending"
    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    PARTIALLY_SUCCEEDED = "partially_succeeded"
    FAILED = "failed"
    DEAD_LETTERED = "dead_lettered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class AttemptState(StrEnum):
    """How one claim of one task stands, or how it ended."""

    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"
    RELEASED = "released"


class JobState(StrEnum):
    """Where a job is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTIALLY_SUCCEEDED = "partially_succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Reason(StrEnum):
    """Why a task, or one attempt of it, ended. The list is closed: filters and metric labels rely on it."""

    OK = "ok"
    ITEMS_FAILED = "items_failed"
    ERROR = "error"
    PERMANENT = "permanent"
    EXHAUSTED = "exhausted"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    TTL = "ttl"
    WORKER_LOST = "worker_lost"
    UNROUTABLE = "unroutable"
    BAD_PAYLOAD = "bad_payload"
    BAD_RESULT = "bad_result"
    AUTHORITY_REVOKED = "authority_revoked"
    UPSTREAM_FAILED = "upstream_failed"
    TRIGGER_UNMET = "trigger_unmet"
    SUPERSEDED = "superseded"
    PURGED = "purged"
    USER = "user"
    HANDED_BACK = "handed_back"
    """Its worker gave it back unfinished: it was shut down, by a signal as well, or has no slot for it in time."""
    OPERATOR = "operator"
    REVOKED = "revoked"


RESERVED_REASONS = frozenset({Reason.AUTHORITY_REVOKED, Reason.OPERATOR})
"""On the list so that it stays closed: keys and roles will end tasks for them."""

WAITING = frozenset({TaskState.PENDING, TaskState.QUEUED, TaskState.RETRYING})
HELD = frozenset({TaskState.LEASED, TaskState.RUNNING, TaskState.CANCELLING})
UNFINISHED = WAITING | HELD
ENDED = frozenset(TaskState) - UNFINISHED
GOOD_ENDS = frozenset({TaskState.SUCCEEDED, TaskState.PARTIALLY_SUCCEEDED})
BAD_ENDS = frozenset({TaskState.FAILED, TaskState.DEAD_LETTERED, TaskState.EXPIRED})

ATTEMPT_OPEN = frozenset({AttemptState.LEASED, AttemptState.RUNNING})
ATTEMPT_ENDED = frozenset(AttemptState) - ATTEMPT_OPEN

JOB_OPEN = frozenset({JobState.PENDING, JobState.RUNNING})
JOB_ENDED = frozenset(JobState) - JOB_OPEN
GOOD_JOB_ENDS = frozenset({JobState.SUCCEEDED, JobState.PARTIALLY_SUCCEEDED})
