"""The span around a submit, where somebody traces: what is submitted without a trace of its own carries that one."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from perdure.engine.requests import TaskRequest
from perdure.wiring import System

R = TypeVar("R", bound=TaskRequest)

SEVERAL = "several"
"""The kind of a submit of tasks of different kinds."""

logger = logging.getLogger("perdure.app")


@contextlib.contextmanager
def traced(system: System, requests: Sequence[R]) -> Iterator[Sequence[R]]:
    """The requests as they are to be sent, inside the span. What goes wrong with a trace changes nothing."""
    if system.tracer is None or not requests:
        yield requests
        return
    kinds = {each.kind for each in requests}
    with contextlib.ExitStack() as stack:
        trace: str | None = None
        try:
            span = system.tracer.submitting(kinds.pop() if len(kinds) == 1 else SEVERAL, len(requests))
            trace = stack.enter_context(span)
        except Exception:
            logger.exception("a submit is not traced")
        yield requests if trace is None else [_with_trace(each, trace) for each in requests]


def _with_trace(request: R, trace: str) -> R:
    return request if request.trace is not None else msgspec.structs.replace(request, trace=trace)
