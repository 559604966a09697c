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
    span = contextlib.ExitStack()
    trace: str | None = None
    try:
        submitting = system.tracer.submitting(kinds.pop() if len(kinds) == 1 else SEVERAL, len(requests))
        trace = span.enter_context(submitting)
    except Exception:
        logger.exception("a submit is not traced")
    try:
        yield requests if trace is None else [_with_trace(each, trace) for each in requests]
    except BaseException as error:
        _end(span, error)
        # Whatever the span made of it: the caller has to know.
        raise
    _end(span, None)


def _end(span: contextlib.ExitStack, error: BaseException | None) -> None:
    try:
        if error is None:
            span.close()
        else:
            span.__exit__(type(error), error, error.__traceback__)
    except Exception as fault:
        if fault is not error:
            logger.exception("the span of a submit was not ended")


def _with_trace(request: R, trace: str) -> R:
    return request if request.trace is not None else msgspec.structs.replace(request, trace=trace)
