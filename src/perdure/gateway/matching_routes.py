"""The routes that do something to all tasks that a filter lets through, step by step."""

from perdure import wire
from perdure.gateway.route import Route

MATCHING: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/tasks/cancel-matching",
        "cancel_matching_tasks",
        "tasks:cancel",
        "Cancel tasks by filter",
        wire.MatchingStep,
        wire.CancelMatching,
    ),
    Route(
        "POST",
        "/v1/dead-letters/requeue-matching",
        "requeue_matching_dead_letters",
        "dead_letters:manage",
        "Run failed tasks again by filter",
        wire.MatchingStep,
        wire.RequeueMatching,
    ),
    Route(
        "POST",
        "/v1/dead-letters/discard-matching",
        "discard_matching_dead_letters",
        "dead_letters:manage",
        "Mark dead letters as done with by filter",
        wire.MatchingStep,
        wire.MatchingDeadLetters,
    ),
    Route(
        "POST",
        "/v1/dead-letters/purge-matching",
        "purge_matching_dead_letters",
        "dead_letters:manage",
        "Remove dead letters for good by filter",
        wire.MatchingStep,
        wire.PurgeMatching,
    ),
)
