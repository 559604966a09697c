"""Spans by OpenTelemetry's own SDK, where it is installed."""

import contextvars

import pytest

from perdure.domain.outcome import Failed, Failure, Succeeded
from perdure.domain.task import Body
from worker.scripted_source import ScriptedSource

pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")


def test_a_run_is_a_trace_of_its_own_linked_to_its_submit():
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from perdure.telemetry.opentelemetry_tracer import OpenTelemetryTracer

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = OpenTelemetryTracer("0.0", provider)
    lease = ScriptedSource().offer("k", hint=False)
    with tracer.submitting("k", 1) as traceparent:
        pass
    assert traceparent is not None

    def run(outcome):
        own = contextvars.copy_context()
        span = own.run(tracer.running, lease, traceparent)
        assert own.run(trace.get_current_span).get_span_context().is_valid
        assert not trace.get_current_span().get_span_context().is_valid
        span.end(outcome)

    run(Succeeded(Body(b"1")))
    run(Failed(Failure("ValueError", "boom", "Traceback")))
    run(None)
    submitted, *runs = exporter.get_finished_spans()
    for each in runs:
        assert each.parent is None
        assert each.context.trace_id != submitted.context.trace_id
        [link] = each.links
        assert (link.context.trace_id, link.context.span_id) == (submitted.context.trace_id, submitted.context.span_id)
        assert each.attributes["messaging.message.id"] == lease.hold.task_id
    assert [each.attributes["perdure.outcome"] for each in runs] == ["succeeded", "failed", "lost"]
    assert [each.status.is_ok for each in runs] == [True, False, False]
    assert runs[1].events[0].attributes["exception.type"] == "ValueError"
