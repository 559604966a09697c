"""One observer that tells several."""

from perdure.telemetry.observer import Observer


class Several:
    """Tells each of its observers, in order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def answered(self, route: str, status: int, seconds: float) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.answered(route, status, seconds)

    def submitted(self, tasks: int, replayed: int) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.submitted(tasks, replayed)

    def refused(self, code: str) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.refused(code)

    def claimed(self, tasks: int) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.claimed(tasks)

    def settled(self, outcome: str, state: str, tasks: int) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.settled(outcome, state, tasks)

    def lease_lost(self, operation: str, tasks: int) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.lease_lost(operation, tasks)

    def renewed(self, leases: int) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.renewed(leases)

    def handled(self, kind: str, outcome: str, seconds: float) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.handled(kind, outcome, seconds)

    def duty_ran(self, duty: str, moved: int, seconds: float) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.duty_ran(duty, moved, seconds)

    def duty_failed(self, duty: str) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.duty_failed(duty)

    def breaker_turned(self, kind: str, state: str) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.breaker_turned(kind, state)

    def store_failed(self, code: str) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.store_failed(code)
