"""Traces by OpenTelemetry: spans of the program's own provider. Needs the extra `otel`."""

import contextlib
from collections.abc import Iterator

from opentelemetry import context, trace
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, TraceFlags

from perdure.domain.attempt import Lease
from perdure.domain.outcome import Failed, Outcome
from perdure.telemetry.observed import OUTCOMES


class OpenTelemetryTracer:
    """Meets `Tracer`. Which spans are kept, and where they go, is for the provider to say that the program has set."""

    def __init__(self, version: str, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("perdure", version, provider)

    @contextlib.contextmanager
    def submitting(self, kind: str, tasks: int) -> Iterator[str | None]:
        """See `Tracer`."""
        attributes: dict[str, str | int] = {
            "messaging.system": "perdure",
            "perdure.kind": kind,
            "perdure.tasks": tasks,
        }
        with self._tracer.start_as_current_span(
            f"submit {kind}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            yield _traceparent(span.get_span_context())

    def running(self, lease: Lease, trace: str | None) -> "OpenTelemetryRun":
        """See `Tracer`."""
        submitted = None if trace is None else _span_context(trace)
        span = self._tracer.start_span(
            f"run {lease.kind}",
            context=context.Context(),
            kind=SpanKind.CONSUMER,
            links=[] if submitted is None else [Link(submitted)],
            attributes=_attributes(lease),
        )
        context.attach(_with_span(span))
        return OpenTelemetryRun(span)


class OpenTelemetryRun:
    """The span of one attempt."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def end(self, outcome: Outcome | None) -> None:
        """See `Run`."""
        name = "lost" if outcome is None else OUTCOMES[type(outcome)]
        self._span.set_attribute("perdure.outcome", name)
        if isinstance(outcome, Failed):
            error = outcome.error
            self._span.add_event(
                "exception",
                {
                    "exception.type": error.type,
                    "exception.message": error.message,
                    "exception.stacktrace": error.traceback,
                },
            )
            self._span.set_status(StatusCode.ERROR, f"{error.type}: {error.message}")
        elif outcome is None:
            self._span.set_status(StatusCode.ERROR, "the lease was lost")
        self._span.end()


def _with_span(span: Span) -> context.Context:
    return trace.set_span_in_context(span)


def _attributes(lease: Lease) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "messaging.system": "perdure",
        "messaging.destination.name": lease.queue,
        "messaging.message.id": lease.hold.task_id,
        "perdure.kind": lease.kind,
        "perdure.organization": lease.hold.organization,
        "perdure.attempt_id": lease.hold.attempt_id,
        "perdure.attempt": lease.attempt,
        "perdure.generation": lease.generation,
    }
    if lease.job_id is not None:
        attributes["perdure.job_id"] = lease.job_id
    return attributes


def _traceparent(span: SpanContext) -> str | None:
    """W3C's text of a span's context; `None` where nothing traces."""
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags & 0xFF:02x}"


def _span_context(traceparent: str) -> SpanContext | None:
    """The context that a `traceparent` tells; `None` for what is none."""
    try:
        _, trace_id, span_id, flags = traceparent.split("-", 4)[:4]
        found = SpanContext(int(trace_id, 16), int(span_id, 16), True, TraceFlags(int(flags, 16)))
    except ValueError:
        return None
    return found if found.is_valid else None
