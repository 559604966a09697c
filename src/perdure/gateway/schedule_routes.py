"""The routes of schedules."""

from perdure.errors import Conflict, IdempotencyConflict, NotFound, Overloaded, PreconditionFailed, TooLarge
from perdure.gateway.route import LARGE_MAX_BYTES, Route
from perdure.wire import schedules as bodies

_ONE = "/v1/schedules/{schedule}"
_READ, _MANAGE = "schedules:read", "schedules:manage"

SCHEDULES: tuple[Route, ...] = (
    Route(
        "GET",
        "/v1/schedules",
        "list_schedules",
        _READ,
        "List schedules",
        bodies.SchedulePage,
        query=bodies.ScheduleQuery,
    ),
    Route(
        "GET",
        _ONE,
        "show_schedule",
        _READ,
        "Show one schedule",
        bodies.Schedule,
        problems=(NotFound,),
        statuses=(200, 304),
        conditional=True,
    ),
    Route(
        "PUT",
        _ONE,
        "put_schedule",
        _MANAGE,
        "Declare a schedule, whole",
        bodies.Schedule,
        bodies.PutSchedule,
        statuses=(200, 201),
        problems=(Conflict, PreconditionFailed, TooLarge),
        conditional=True,
        max_bytes=LARGE_MAX_BYTES,
    ),
    Route(
        "DELETE",
        _ONE,
        "delete_schedule",
        _MANAGE,
        "Remove a schedule; what it made stays",
        statuses=(204,),
        problems=(NotFound, Conflict, PreconditionFailed),
        conditional=True,
    ),
    *(
        Route("POST", f"{_ONE}/{verb}", f"{verb}_schedule", _MANAGE, summary, bodies.Schedule, problems=(NotFound,))
        for verb, summary in (
            ("pause", "Let nothing come of a schedule until it is resumed"),
            ("resume", "Let a schedule go on with its next instant"),
        )
    ),
    Route(
        "POST",
        f"{_ONE}/trigger",
        "trigger_schedule",
        _MANAGE,
        "Let a schedule make its task or job now",
        bodies.MadeAtInstant,
        statuses=(202, 200),
        problems=(NotFound, Conflict, IdempotencyConflict, Overloaded, TooLarge),
        keyed=True,
    ),
    Route(
        "POST",
        f"{_ONE}/backfill",
        "backfill_schedule",
        _MANAGE,
        "Let the instants of a time that has passed make what they did not",
        bodies.Backfilled,
        bodies.Backfill,
        problems=(NotFound, TooLarge),
    ),
    Route(
        "GET",
        f"{_ONE}/preview",
        "preview_schedule",
        _READ,
        "Show the next instants of a schedule",
        bodies.Instants,
        query=bodies.PreviewQuery,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        f"{_ONE}/fires",
        "list_fires",
        _READ,
        "Show what came of the instants of a schedule",
        bodies.FirePage,
        query=bodies.FireQuery,
        problems=(NotFound,),
    ),
)
