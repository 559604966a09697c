"""Metrics for Prometheus: a registry of their own, few labels, each label bounded.

`FAMILIES` is the whole list; docs/metrics.md is made from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from perdure.ambient import Clock
from perdure.domain.breaker import BreakerState
from perdure.domain.limits import SECOND_US
from perdure.store.views import BreakerView, Overview

LABEL_VALUES_MAX = 100
"""How many values a label with open values (kind, queue) may have; the rest is told as `other`."""
OTHER = "other"
HTTP_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
HANDLER_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0)


class Family(NamedTuple):
    """One metric."""

    name: str
    sort: str
    labels: tuple[str, ...]
    doc: str
    buckets: tuple[float, ...] = ()


FAMILIES: tuple[Family, ...] = (
    Family("perdure_http_requests_total", "counter", ("route", "status"), "Requests answered."),
    Family("perdure_http_request_seconds", "histogram", ("route",), "How long answers took.", HTTP_BUCKETS),
    Family("perdure_tasks_submitted_total", "counter", (), "Tasks stored through this process."),
    Family("perdure_tasks_replayed_total", "counter", (), "Submits that found their task by its idempotency key."),
    Family("perdure_refused_total", "counter", ("code",), "Requests and items refused, by code of the error."),
    Family("perdure_tasks_claimed_total", "counter", (), "Tasks leased through this process."),
    Family("perdure_attempts_settled_total", "counter", ("outcome",), "Attempts that their holders ended."),
    Family("perdure_tasks_retried_total", "counter", (), "Failed attempts whose task will be tried again."),
    Family("perdure_attempts_released_total", "counter", (), "Attempts handed back unfinished."),
    Family(
        "perdure_attempts_lost_total",
        "counter",
        (),
        "Attempts that the duty `lose` of this process ended: lease, deadline, timeout or time to stop over, or worker"
        " revoked. Each counts once, where it was found.",
    ),
    Family(
        "perdure_tasks_expired_total",
        "counter",
        (),
        "Waiting tasks that the duty `expire` of this process ended: time to live or deadline over. Those that a claim"
        " found first are in no counter; those that a worker found have the outcome `not_started`.",
    ),
    Family("perdure_lease_lost_total", "counter", ("operation",), "Writes refused because the lease was lost."),
    Family("perdure_leases_renewed_total", "counter", (), "Leases extended through this process."),
    Family("perdure_handler_seconds", "histogram", ("kind", "outcome"), "How long handlers ran here.", HANDLER_BUCKETS),
    Family("perdure_duty_runs_total", "counter", ("duty", "result"), "Runs of background duties."),
    Family("perdure_duty_moved_total", "counter", ("duty",), "What duties moved."),
    Family("perdure_duty_seconds_total", "counter", ("duty",), "How long duties ran."),
    Family("perdure_duty_lag_seconds", "gauge", ("duty",), "How long ago each duty last succeeded here."),
    Family(
        "perdure_breaker_trips_total",
        "counter",
        ("kind",),
        "Breakers of kinds that opened by what was settled through this process. Each counts once, where it was found.",
    ),
    Family(
        "perdure_breaker_state", "gauge", ("kind", "state"), "1 for the state in which a kind's breaker is, else 0."
    ),
    Family("perdure_store_errors_total", "counter", ("code",), "Calls that the store could not answer."),
    Family("perdure_queue_tasks", "gauge", ("queue", "state"), "Unfinished tasks by queue and state."),
    Family(
        "perdure_dead_letters",
        "gauge",
        ("queue",),
        "Dead letters by queue, until they are requeued or removed; those that were discarded are among them.",
    ),
    Family("perdure_oldest_queued_seconds", "gauge", (), "Age of the oldest task that could be claimed."),
    Family("perdure_oldest_active_seconds", "gauge", (), "Age of the oldest lease."),
    Family("perdure_workers_active", "gauge", (), "Workers that were seen lately."),
    Family("perdure_info", "gauge", ("version",), "The version of perdure; always 1."),
)

ENDED = frozenset({"succeeded", "partially_succeeded", "failed", "dead_lettered", "cancelled", "expired"})


class Metrics:
    """An observer that counts, and renders what it counted."""

    def __init__(self, clock: Clock, version: str) -> None:
        self._clock = clock
        self._registry = CollectorRegistry()
        self._made = {family.name: _made(family, self._registry) for family in FAMILIES}
        self._children: dict[tuple[str, ...], Any] = {}
        self._values: dict[str, set[str]] = {"kind": set(), "queue": set()}
        self._succeeded_us: dict[str, int] = {}
        self._child("perdure_info", version).set(1)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """See `Observer`."""
        self._child("perdure_http_requests_total", route, str(status)).inc()
        self._child("perdure_http_request_seconds", route).observe(seconds)

    def submitted(self, tasks: int, replayed: int) -> None:
        """See `Observer`."""
        self._child("perdure_tasks_submitted_total").inc(tasks)
        self._child("perdure_tasks_replayed_total").inc(replayed)

    def refused(self, code: str) -> None:
        """See `Observer`."""
        self._child("perdure_refused_total", code).inc()

    def claimed(self, tasks: int) -> None:
        """See `Observer`."""
        self._child("perdure_tasks_claimed_total").inc(tasks)

    def settled(self, outcome: str, state: str, tasks: int) -> None:
        """See `Observer`."""
        self._child("perdure_attempts_settled_total", outcome).inc(tasks)
        if state == "retrying":
            self._child("perdure_tasks_retried_total").inc(tasks)
        if outcome == "handed_back":
            self._child("perdure_attempts_released_total").inc(tasks)

    def lease_lost(self, operation: str, tasks: int) -> None:
        """See `Observer`."""
        self._child("perdure_lease_lost_total", operation).inc(tasks)

    def renewed(self, leases: int) -> None:
        """See `Observer`."""
        self._child("perdure_leases_renewed_total").inc(leases)

    def handled(self, kind: str, outcome: str, seconds: float) -> None:
        """See `Observer`."""
        self._child("perdure_handler_seconds", self._bounded("kind", kind), outcome).observe(seconds)

    def duty_ran(self, duty: str, moved: int, seconds: float) -> None:
        """See `Observer`."""
        self._succeeded_us[duty] = self._clock.monotonic_us()
        self._child("perdure_duty_runs_total", duty, "ok").inc()
        self._child("perdure_duty_moved_total", duty).inc(moved)
        self._child("perdure_duty_seconds_total", duty).inc(seconds)
        if duty == "lose":
            self._child("perdure_attempts_lost_total").inc(moved)
        elif duty == "expire":
            self._child("perdure_tasks_expired_total").inc(moved)

    def duty_failed(self, duty: str) -> None:
        """See `Observer`."""
        self._child("perdure_duty_runs_total", duty, "failed").inc()

    def breaker_turned(self, kind: str, state: str) -> None:
        """See `Observer`."""
        if state == BreakerState.OPEN:
            self._child("perdure_breaker_trips_total", self._bounded("kind", kind)).inc()

    def store_failed(self, code: str) -> None:
        """See `Observer`."""
        self._child("perdure_store_errors_total", code).inc()

    def render(self, overview: Overview | None, now_us: int, breakers: Sequence[BreakerView] = ()) -> bytes:
        """All metrics as text. `now_us` is the time of the overview; without one, its gauges keep what they had."""
        for duty, then_us in self._succeeded_us.items():
            lag_us = self._clock.monotonic_us() - then_us
            self._child("perdure_duty_lag_seconds", duty).set(lag_us / SECOND_US)
        if overview is not None:
            self._look(overview, now_us)
            self._look_at_breakers(breakers)
        return generate_latest(_WithoutCreated(self._registry))

    def _look_at_breakers(self, breakers: Sequence[BreakerView]) -> None:
        self._clear("perdure_breaker_state")
        for each in breakers:
            kind = self._bounded("kind", each.kind)
            for state in BreakerState if kind != OTHER else ():
                self._child("perdure_breaker_state", kind, state).set(each.state is state)

    def _clear(self, name: str) -> None:
        self._made[name].clear()
        for labels in [each for each in self._children if each[0] == name]:
            del self._children[labels]

    def _look(self, overview: Overview, now_us: int) -> None:
        unfinished: dict[tuple[str, str], int] = {}
        for row in overview.counts:
            if row.state not in ENDED:
                key = (self._bounded("queue", row.queue), str(row.state))
                unfinished[key] = unfinished.get(key, 0) + row.tasks
        self._look_at_dead_letters(overview)
        self._clear("perdure_queue_tasks")
        for (queue, state), tasks in unfinished.items():
            self._child("perdure_queue_tasks", queue, state).set(tasks)
        self._child("perdure_workers_active").set(overview.workers_active)
        self._child("perdure_oldest_queued_seconds").set(_age(overview.oldest_queued_us, now_us))
        self._child("perdure_oldest_active_seconds").set(_age(overview.oldest_active_us, now_us))

    def _look_at_dead_letters(self, overview: Overview) -> None:
        """A queue that had some is told as 0, so that a graph falls and does not end."""
        dead = dict.fromkeys((key[1] for key in self._children if key[0] == "perdure_dead_letters"), 0)
        for row in overview.counts:
            queue = self._bounded("queue", row.queue)
            dead[queue] = dead.get(queue, 0) + (row.tasks if row.state == "dead_lettered" else 0)
        for queue, tasks in dead.items():
            self._child("perdure_dead_letters", queue).set(tasks)

    def _child(self, name: str, *labels: str) -> Any:
        key = (name, *labels)
        child = self._children.get(key)
        if child is None:
            made = self._made[name]
            child = self._children[key] = made.labels(*labels) if labels else made
        return child

    def _bounded(self, label: str, value: str) -> str:
        known = self._values[label]
        if value in known:
            return value
        if len(known) >= LABEL_VALUES_MAX:
            return OTHER
        known.add(value)
        return value


class _WithoutCreated(CollectorRegistry):
    """The registry without the time at which each series began: twice the lines, and nothing that is asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._whole = registry

    def collect(self) -> Iterator[Metric]:
        """The families, with the samples that count."""
        for family in self._whole.collect():
            family.samples = [each for each in family.samples if not each.name.endswith("_created")]
            yield family


def _made(family: Family, registry: CollectorRegistry) -> Any:
    if family.sort == "histogram":
        return Histogram(family.name, family.doc, family.labels, registry=registry, buckets=family.buckets)
    kinds: Mapping[str, Any] = {"counter": Counter, "gauge": Gauge}
    return kinds[family.sort](family.name, family.doc, family.labels, registry=registry)


def _age(then_us: int | None, now_us: int) -> float:
    return 0.0 if then_us is None else max(0, now_us - then_us) / SECOND_US
