"""What can be observed. Whoever does something tells the observer that it was handed; nobody asks it anything."""

from typing import Protocol


class Observer(Protocol):
    """Called on the hot path: every method returns at once and never raises. Durations are seconds."""

    def answered(self, route: str, status: int, seconds: float) -> None:
        """A request was answered. `route` is a name of the table of routes, or one of few others."""

    def submitted(self, tasks: int, replayed: int) -> None:
        """New tasks were stored; `replayed` more existed before."""

    def refused(self, code: str) -> None:
        """Something was refused, by the error's code."""

    def claimed(self, tasks: int) -> None:
        """Tasks were leased."""

    def settled(self, outcome: str, state: str, tasks: int) -> None:
        """Attempts ended by their holder's outcome; the tasks are in `state` now."""

    def lease_lost(self, operation: str, tasks: int) -> None:
        """Writes of attempts that are not live were refused."""

    def renewed(self, leases: int) -> None:
        """Leases were extended."""

    def handled(self, kind: str, outcome: str, seconds: float) -> None:
        """A handler of this process ran so long."""

    def duty_ran(self, duty: str, moved: int, seconds: float) -> None:
        """A duty ran and moved so many tasks."""

    def duty_failed(self, duty: str) -> None:
        """A duty could not run."""

    def breaker_turned(self, kind: str, state: str) -> None:
        """The breaker of a kind is in this state from now on, by how attempts have ended."""

    def store_failed(self, code: str) -> None:
        """The store could not be used, by the error's code."""
