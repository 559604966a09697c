"""Log lines of what is observed: the wording lives here, the facts travel beside it for logs in JSON."""

import logging

SLOW_SECONDS = 5.0
WAITING_ROUTES = frozenset({"claim_work", "wait_for_hints", "wait_for_tasks"})
"""They take long on purpose."""

_requests = logging.getLogger("perdure.requests")
_work = logging.getLogger("perdure.work")


class LogLines:
    """An observer that writes log lines: each request at `debug`, slow and broken ones at `warning`."""

    def answered(self, route: str, status: int, seconds: float) -> None:
        """See `Observer`."""
        slow = seconds >= SLOW_SECONDS and route not in WAITING_ROUTES
        level = logging.WARNING if slow or status >= 500 else logging.DEBUG
        if _requests.isEnabledFor(level):
            facts = {"route": route, "status": status, "seconds": round(seconds, 6)}
            _requests.log(level, "%s answered %d in %.1f ms", route, status, seconds * 1_000, extra={"facts": facts})

    def submitted(self, tasks: int, replayed: int) -> None:
        """See `Observer`."""
        _tell("%d tasks submitted, %d replayed", tasks, replayed)

    def refused(self, code: str) -> None:
        """See `Observer`."""
        _tell("refused: %s", code)

    def claimed(self, tasks: int) -> None:
        """See `Observer`."""
        if tasks:
            _tell("%d tasks claimed", tasks)

    def settled(self, outcome: str, state: str, tasks: int) -> None:
        """See `Observer`."""
        _tell("%d attempts %s: tasks are %s", tasks, outcome, state)

    def lease_lost(self, operation: str, tasks: int) -> None:
        """See `Observer`."""
        _work.warning("%s of %d attempts refused: their leases are lost", operation, tasks)

    def renewed(self, leases: int) -> None:
        """See `Observer`."""

    def handled(self, kind: str, outcome: str, seconds: float) -> None:
        """See `Observer`."""
        _tell("a handler of %s %s after %.3f s", kind, outcome, seconds)

    def duty_ran(self, duty: str, moved: int, seconds: float) -> None:
        """See `Observer`."""
        if moved:
            _tell("duty %s moved %d in %.3f s", duty, moved, seconds)

    def duty_failed(self, duty: str) -> None:
        """See `Observer`; the runner of duties tells why."""

    def breaker_turned(self, kind: str, state: str) -> None:
        """See `Observer`; the engine tells why, wherever it runs."""

    def store_failed(self, code: str) -> None:
        """See `Observer`; whoever asked is told, and tells."""
        _tell("the store failed: %s", code)


def _tell(words: str, *facts: object) -> None:
    _work.debug(words, *facts)
