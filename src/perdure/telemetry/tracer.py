"""What makes traces: handed in like an observer, asked around each submit and each attempt.

A task may wait for days and run many times, so an attempt begins a trace of its own, with a link to the one in which it
was submitted. That one travels with the task as a W3C `traceparent`.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from perdure.domain.attempt import Lease
from perdure.domain.outcome import Outcome


class Run(Protocol):
    """The span of one attempt."""

    def end(self, outcome: Outcome | None) -> None:
        """The handler is over, with this outcome; `None`: the attempt lost its lease. Called once, on any context."""


class Tracer(Protocol):
    """Its methods return at once. Where they raise, the work goes on without a trace."""

    def submitting(self, kind: str, tasks: int) -> AbstractContextManager[str | None]:
        """A span around a submit of so many tasks, of one kind or of `several`; it gives the `traceparent` to be kept
        with them, or `None` for none.
        """

    def running(self, lease: Lease, trace: str | None) -> Run:
        """Begin the span of an attempt, and make it the one under way in the calling context, which is the handler's.

        `trace` is the `traceparent` that came with the task.
        """
