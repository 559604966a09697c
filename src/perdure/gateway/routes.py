"""The one table of routes: routing, authorization, OpenAPI, the client's types and the tests are made from it."""

from typing import Any, NamedTuple

from perdure import wire
from perdure.errors import (
    AlreadyEnded,
    Conflict,
    IdempotencyConflict,
    LeaseLost,
    NotFound,
    Overloaded,
    PerdureError,
    Redacted,
    TooLarge,
)

Problems = tuple[type[PerdureError], ...]

SMALL_MAX_BYTES = 1024 * 1024
"""The largest body of a request about one thing."""
LARGE_MAX_BYTES = 8 * 1024 * 1024
"""The largest body of a request about many things: send more in several requests."""


class Route(NamedTuple):
    """One operation. `path` has its variables in braces; all are texts of the path."""

    method: str
    path: str
    name: str
    """The operation: also its id in OpenAPI and its label in metrics."""
    permission: str | None
    """What a principal must have; `None` for what everybody may have."""
    summary: str
    answer: Any = None
    """The type of a good answer's body; `None` for no body (204)."""
    body: Any = None
    """The type of the request's body; `None` for no body."""
    optional: bool = False
    """The body may be left out."""
    query: Any = None
    """The type of the parameters; `None` for none."""
    statuses: tuple[int, ...] = (200,)
    problems: Problems = ()
    """What it may raise besides what every route may (`Malformed`, `Invalid`, `Unavailable`)."""
    keyed: bool = False
    """It takes the header `Idempotency-Key`."""
    max_bytes: int = SMALL_MAX_BYTES
    """The largest body taken."""


_SUBMIT: Problems = (IdempotencyConflict, Overloaded, TooLarge)
_CHANGE: Problems = (Conflict,)

TASKS: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/tasks",
        "submit_tasks",
        "tasks:submit",
        "Submit one task, or a list of them",
        wire.SubmittedTask | wire.SubmittedTasks,
        wire.SubmitTask | list[wire.SubmitTask],
        statuses=(202, 200, 207),
        problems=_SUBMIT,
        keyed=True,
        max_bytes=LARGE_MAX_BYTES,
    ),
    Route("GET", "/v1/tasks", "list_tasks", "tasks:read", "List tasks", wire.TaskPage, query=wire.TaskQuery),
    Route(
        "POST",
        "/v1/tasks/cancel",
        "cancel_tasks",
        "tasks:cancel",
        "Cancel many tasks",
        wire.CancelledTasks,
        wire.CancelTasks,
    ),
    Route(
        "POST",
        "/v1/tasks/wait",
        "wait_for_tasks",
        "tasks:read",
        "Wait until tasks have ended",
        wire.EndedTasks,
        wire.WaitTasks,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}",
        "show_task",
        "tasks:read",
        "Show one task with its payload and result",
        wire.Task,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}/events",
        "list_task_events",
        "tasks:read",
        "Show the history of a task",
        wire.Events,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}/attempts",
        "list_attempts",
        "tasks:read",
        "Show the claims of a task",
        wire.Attempts,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}/parts",
        "list_parts",
        "tasks:read",
        "Show the pieces of a task's result",
        wire.Parts,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}/logs",
        "list_logs",
        "tasks:read",
        "Show what the handlers of a task logged",
        wire.Logs,
        problems=(NotFound,),
    ),
    Route(
        "POST",
        "/v1/tasks/{task_id}/cancel",
        "cancel_task",
        "tasks:cancel",
        "Cancel one task",
        wire.CancelledTask,
        wire.CancelTask,
        optional=True,
        statuses=(200, 202),
        problems=(NotFound, AlreadyEnded),
    ),
)

JOBS: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/jobs",
        "submit_job",
        "jobs:submit",
        "Submit a job",
        wire.SubmittedJob,
        wire.SubmitJob,
        statuses=(202, 200),
        problems=_SUBMIT,
        keyed=True,
        max_bytes=LARGE_MAX_BYTES,
    ),
    Route("GET", "/v1/jobs", "list_jobs", "jobs:read", "List jobs", wire.JobPage, query=wire.JobQuery),
    Route("GET", "/v1/jobs/{job_id}", "show_job", "jobs:read", "Show one job", wire.Job, problems=(NotFound,)),
    Route(
        "GET",
        "/v1/jobs/{job_id}/tasks",
        "list_job_tasks",
        "jobs:read",
        "Show the tasks of a job",
        wire.JobTasks,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/jobs/{job_id}/events",
        "list_job_events",
        "jobs:read",
        "Show the history of a job",
        wire.Events,
        problems=(NotFound,),
    ),
    Route(
        "POST",
        "/v1/jobs/{job_id}/cancel",
        "cancel_job",
        "jobs:cancel",
        "Stop a job",
        wire.JobStopping,
        wire.CancelJob,
        optional=True,
        statuses=(202,),
        problems=(NotFound, AlreadyEnded),
    ),
)

OPERATING: tuple[Route, ...] = (
    Route("GET", "/v1/queues", "list_queues", "queues:read", "List queues", wire.Queues),
    Route(
        "PATCH",
        "/v1/queues/{queue}",
        "configure_queue",
        "queues:manage",
        "Choose a queue's policy",
        wire.QueueChanged,
        wire.ConfigureQueue,
        problems=_CHANGE,
    ),
    Route(
        "POST",
        "/v1/queues/{queue}/pause",
        "pause_queue",
        "queues:manage",
        "Claim nothing of a queue from now on",
        wire.QueueChanged,
        problems=_CHANGE,
    ),
    Route(
        "POST",
        "/v1/queues/{queue}/resume",
        "resume_queue",
        "queues:manage",
        "Let a queue be claimed again",
        wire.QueueChanged,
        problems=_CHANGE,
    ),
    Route(
        "POST",
        "/v1/queues/{queue}/purge",
        "purge_queue",
        "queues:manage",
        "Cancel all that waits in a queue",
        wire.Purged,
    ),
    Route("GET", "/v1/workers", "list_workers", "workers:read", "List workers", wire.Workers, query=wire.ActiveQuery),
    *(
        Route(
            "POST",
            f"/v1/workers/{{worker_id}}/{verb}",
            f"{verb}_worker",
            "workers:manage",
            summary,
            wire.Ordered,
            problems=(NotFound,),
        )
        for verb, summary in (
            ("drain", "Have a worker finish what it holds and leave"),
            ("pause", "Have a worker claim nothing"),
            ("resume", "Have a worker claim again"),
            ("revoke", "Have a worker stop; nothing that it writes is taken"),
        )
    ),
    Route(
        "GET",
        "/v1/dead-letters",
        "list_dead_letters",
        "tasks:read",
        "List dead letters",
        wire.TaskPage,
        query=wire.DeadLetterQuery,
    ),
    Route(
        "POST",
        "/v1/dead-letters/requeue",
        "requeue_dead_letters",
        "dead_letters:manage",
        "Run failed tasks again",
        wire.Redriven,
        wire.RequeueMany,
        problems=(TooLarge,),
    ),
    Route(
        "POST",
        "/v1/dead-letters/discard",
        "discard_dead_letters",
        "dead_letters:manage",
        "Mark dead letters as done with",
        wire.DeadLettersMarked,
        wire.DeadLetterChoice,
    ),
    Route(
        "POST",
        "/v1/dead-letters/purge",
        "purge_dead_letters",
        "dead_letters:manage",
        "Remove dead letters for good",
        wire.DeadLettersMarked,
        wire.DeadLetterChoice,
    ),
    Route(
        "POST",
        "/v1/dead-letters/{task_id}/requeue",
        "requeue_dead_letter",
        "dead_letters:manage",
        "Run a failed task again",
        wire.SubmittedTask,
        wire.Requeue,
        optional=True,
        statuses=(202,),
        problems=(NotFound, Conflict, Redacted, TooLarge),
    ),
    Route(
        "POST",
        "/v1/dead-letters/{task_id}/discard",
        "discard_dead_letter",
        "dead_letters:manage",
        "Mark a dead letter as done with",
        statuses=(204,),
        problems=(NotFound,),
    ),
    Route(
        "DELETE",
        "/v1/dead-letters/{task_id}",
        "purge_dead_letter",
        "dead_letters:manage",
        "Remove a dead letter for good",
        statuses=(204,),
        problems=(NotFound,),
    ),
    Route("GET", "/v1/kinds", "list_kinds", "kinds:read", "List the kinds that are known", wire.Kinds),
    Route(
        "POST",
        "/v1/kinds",
        "declare_kinds",
        "kinds:declare",
        "Make kinds known as their workers have them",
        body=wire.DeclareKinds,
        statuses=(204,),
        problems=(Conflict, TooLarge),
    ),
    Route("GET", "/v1/meta/tasks", "count_tasks", "meta:read", "Counts, oldest and totals", wire.Counts),
    Route("GET", "/v1/meta/config", "show_config", "meta:read", "Settings and limits in effect", wire.Config),
)

WORKING: tuple[Route, ...] = (
    Route("POST", "/v1/worker/register", "register_worker", "work", "Make a worker known", wire.Order, wire.Register),
    Route(
        "POST",
        "/v1/worker/heartbeat",
        "worker_heartbeat",
        "work",
        "Say that a worker is there",
        wire.Order,
        wire.Heartbeat,
    ),
    Route(
        "POST",
        "/v1/worker/leave",
        "worker_leave",
        "work",
        "Say that a worker is gone for good",
        body=wire.Leave,
        statuses=(204,),
    ),
    Route(
        "POST",
        "/v1/worker/claim",
        "claim_work",
        "work",
        "Claim tasks, waiting for some",
        wire.ClaimAnswer,
        wire.ClaimWork,
    ),
    Route(
        "GET",
        "/v1/worker/hints",
        "wait_for_hints",
        "work",
        "Wait for a hint of new work",
        wire.Hinted,
        query=wire.HintQuery,
    ),
    Route(
        "POST",
        "/v1/worker/renew",
        "renew_leases",
        "work",
        "Renew leases",
        wire.RenewAnswer,
        wire.RenewMany,
        max_bytes=LARGE_MAX_BYTES,
    ),
    Route(
        "GET",
        "/v1/worker/control",
        "list_controls",
        "work",
        "Ask for the cancels of what a worker holds",
        wire.Controls,
        query=wire.ControlQuery,
    ),
    Route(
        "POST",
        "/v1/worker/inputs",
        "read_inputs",
        "work",
        "Read how the parents of a task ended",
        wire.Inputs,
        wire.Hold,
        problems=(LeaseLost, TooLarge),
    ),
    Route(
        "POST",
        "/v1/worker/report",
        "report_work",
        "work",
        "Report progress, phases, parts and checkpoints",
        wire.ReportAnswer,
        wire.ReportMany,
        max_bytes=LARGE_MAX_BYTES,
    ),
    Route(
        "POST",
        "/v1/worker/settle",
        "settle_work",
        "work",
        "End attempts",
        wire.SettleAnswers,
        wire.SettleMany,
        max_bytes=LARGE_MAX_BYTES,
    ),
    Route(
        "POST",
        "/v1/worker/settle-one",
        "settle_one",
        "work",
        "End one attempt",
        wire.SettleAnswered,
        wire.SettleOne,
        problems=(LeaseLost,),
    ),
    Route(
        "POST",
        "/v1/worker/hand-back",
        "hand_back",
        "work",
        "Give leases back unused",
        wire.SettleAnswers,
        wire.HandBack,
        max_bytes=LARGE_MAX_BYTES,
    ),
)

ROUTES: tuple[Route, ...] = (*TASKS, *JOBS, *OPERATING, *WORKING)

BY_NAME: dict[str, Route] = {route.name: route for route in ROUTES}
