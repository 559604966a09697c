"""The one table of routes: routing, authorization, OpenAPI, the client's types and the tests are made from it."""

from typing import Annotated, Any

from msgspec import Meta

from perdure import wire
from perdure.domain import limits
from perdure.errors import (
    AlreadyEnded,
    Conflict,
    IdempotencyConflict,
    NotFound,
    Overloaded,
    Redacted,
    TooLarge,
)
from perdure.gateway.definition_routes import DEFINITIONS
from perdure.gateway.flow_routes import FLOW
from perdure.gateway.matching_routes import MATCHING
from perdure.gateway.route import LARGE_MAX_BYTES, Problems, Route
from perdure.gateway.schedule_routes import SCHEDULES
from perdure.gateway.worker_routes import WORKING

TaskList = Annotated[
    list[wire.SubmitListed], Meta(extra_json_schema={"minItems": 1, "maxItems": limits.SUBMIT_MAX_TASKS})
]
HTML = "text/html; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

_SUBMIT: Problems = (Conflict, IdempotencyConflict, Overloaded, TooLarge)
_CHANGE: Problems = (Conflict,)

TASKS: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/tasks",
        "submit_tasks",
        "tasks:submit",
        "Submit one task, or a list of them",
        (wire.SubmittedTask, wire.SubmittedTasks),
        wire.SubmitTask | TaskList,
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
        waits=True,
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
        "/v1/tasks/{task_id}/why",
        "why_task",
        "tasks:read",
        "Tell what keeps a task from running",
        wire.Obstacles,
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
        query=wire.LogQuery,
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
        "GET",
        "/v1/jobs/{job_id}/progress",
        "show_job_progress",
        "jobs:read",
        "Show how far a job is",
        wire.JobProgress,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/jobs/{job_id}/timeline",
        "show_job_timeline",
        "jobs:read",
        "Show when a job's tasks ran, and its critical path",
        wire.JobTimeline,
        problems=(NotFound,),
    ),
    Route(
        "POST",
        "/v1/jobs/{job_id}/retry",
        "retry_job",
        "jobs:retry",
        "Run again what failed of a job",
        wire.JobRetried,
        statuses=(202,),
        problems=(NotFound, Conflict, Redacted),
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
        statuses=(202, 200),
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

SYSTEM: tuple[Route, ...] = (
    Route("GET", "/", "find_docs", None, "The way to the API reference", statuses=(307,), media=HTML),
    Route("GET", "/healthz", "check_health", None, "Whether the process answers", wire.Health),
    Route("GET", "/readyz", "check_readiness", None, "Whether work can be taken", wire.Readiness, statuses=(200, 503)),
    Route("GET", "/metrics", "read_metrics", "metrics:read", "Metrics for Prometheus", media=PROMETHEUS),
    Route("GET", "/openapi.json", "describe_api", None, "This description", dict[str, Any]),
    Route("GET", "/docs", "show_docs", None, "The API reference for people", media=HTML),
    Route(
        "GET",
        "/problems/{code}",
        "explain_problem",
        None,
        "What a type of problem means",
        media=HTML,
        problems=(NotFound,),
    ),
)

ROUTES: tuple[Route, ...] = (*TASKS, *JOBS, *OPERATING, *MATCHING, *DEFINITIONS, *FLOW, *SCHEDULES, *WORKING, *SYSTEM)

WATCHING: tuple[Route, ...] = tuple(route for route in SYSTEM if route.path in ("/healthz", "/readyz", "/metrics"))
"""What a process answers that serves nobody and is watched."""

BY_NAME: dict[str, Route] = {route.name: route for route in ROUTES}

__all__ = ["BY_NAME", "ROUTES", "WATCHING", "Problems", "Route"]
