"""The span of each attempt, where a tracer is handed in. What goes wrong with a trace is told, and changes nothing."""

import contextvars
import logging

import msgspec

from perdure.domain.outcome import Outcome
from perdure.telemetry.tracer import Tracer
from perdure.worker.held import HeldAttempt

logger = logging.getLogger("perdure.worker")


def trace_of(options: str | None) -> str | None:
    """The `traceparent` that came with a task."""
    trace = None if options is None else msgspec.json.decode(options).get("trace")
    return trace if isinstance(trace, str) else None


def begin(tracer: Tracer | None, held: HeldAttempt, own: contextvars.Context) -> None:
    """Begin the attempt's span in the handler's own context."""
    if tracer is None:
        return
    try:
        held.run = own.run(tracer.running, held.lease, trace_of(held.lease.options))
    except Exception:
        logger.exception("the attempt of task %s is not traced", held.hold.task_id)


def end(held: HeldAttempt, outcome: Outcome | None) -> None:
    """End the attempt's span, if it has one."""
    run, held.run = held.run, None
    if run is None:
        return
    try:
        run.end(outcome)
    except Exception:
        logger.exception("the trace of task %s is not ended", held.hold.task_id)
