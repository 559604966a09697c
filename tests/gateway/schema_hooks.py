"""What a JSON Schema cannot say, told to schemathesis: texts of our formats, names that fit together, short waits."""

import atexit
import json
import os
import string
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import schemathesis
from hypothesis import strategies as st

SHOWN = st.text(alphabet=string.ascii_letters + string.digits + "-_.:äß", min_size=1, max_size=100)
schemathesis.openapi.format("title", SHOWN)
schemathesis.openapi.format("key", SHOWN)
schemathesis.openapi.format("cursor", st.just(""))
schemathesis.openapi.format("etag", st.sampled_from(["*", '"1-0123456789ab"']))
KNOWN = {"name", "on_failure"}
NEAR = st.integers(0, 10**7).map(lambda seconds: (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat())
schemathesis.openapi.format("date-time", NEAR)
schemathesis.openapi.format("cron", st.sampled_from(["*/5 * * * *", "0 3 * * MON-FRI", "@daily", "30 0 3 L * *"]))
schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Nobody waits; instants lie near; tasks of a job have different names and depend on nobody."""
    body, query = case.body, case.query
    fits = case.meta is not None and case.meta.generation.mode.is_positive
    if fits:
        as_utf8(case.headers)
        for kind in kinds(body):
            differ(kind)
            if "schema" in kind:
                kind["schema"] = without_nul(kind["schema"])
    for item in body if isinstance(body, list) else []:
        if isinstance(item, dict):
            adjust(item, fits)
    if isinstance(body, dict):
        adjust(body, fits)
        if case.operation.path == "/v1/definitions/kinds/{kind}" and isinstance(body.get("kind"), str):
            body["kind"] = case.path_parameters["kind"]
        if case.operation.path in ("/v1/jobs", "/v1/worker/add-tasks") and isinstance(body.get("tasks"), list):
            for number, task in enumerate(body["tasks"]):
                if isinstance(task, dict):
                    part(number, task, fits)
        if fits and case.operation.path.startswith("/v1/schedules/"):
            schedule(body)
    for name in ("after", "ended_from", "ended_before") if fits and isinstance(query, dict) else ():
        if not is_instant(query.get(name)):
            query.pop(name, None)
    if isinstance(query, dict) and isinstance(query.get("wait"), int | float) and 0 <= query["wait"] <= 30:
        query["wait"] = 0


FITTING = Counter()
"""The statuses of the answers to requests that fit the description."""


@schemathesis.hook
def after_call(context, case, response):
    """Count what became of requests that fit."""
    if case.meta is not None and case.meta.generation.mode.is_positive:
        FITTING[response.status_code] += 1


if "PERDURE_SCHEMA_COUNTS" in os.environ:
    atexit.register(lambda: Path(os.environ["PERDURE_SCHEMA_COUNTS"]).write_text(json.dumps(FITTING)))


def schedule(body):
    """When and what are said once each; a backfill is of a time that has passed."""
    if {"start", "end"} == body.keys():
        body.update(start="2026-01-01T00:00:00Z", end="2026-01-02T00:00:00Z")
        return
    for field in ("every", "at", "gap", "fold", "start", "end", "job"):
        body.pop(field, None)
    body["cron"] = body.get("cron") or "@daily"
    body["task"] = body.get("task") or {"kind": "k"}
    body["task"].pop("delay", None)
    adjust(body["task"], True)


def adjust(body, fits):
    if isinstance(body.get("wait"), int | float) and 0 <= body["wait"] <= 30:
        body["wait"] = 0
    if fits and body.get("unique_key") is not None and body.get("unique") is None:
        del body["unique_key"]
    # Formats are not kept to everywhere, also where a request is meant to fit.
    for name in ("ended_from", "ended_before") if fits else ():
        if not is_instant(body.get(name)):
            del body[name]
    if body.get("run_at") == "" or (fits and not is_instant(body.get("run_at"))):
        body.pop("run_at", None)
    # What is over before it is due is refused: a rule between two amounts, which no schema can tell.
    amounts = [body.get(name) for name in ("ttl", "delay")]
    if fits and all(isinstance(each, int | float) for each in amounts) and amounts[0] <= amounts[1]:
        del body["ttl"]


def as_utf8(headers):
    """A key is text in UTF-8; who sends these requests writes headers in Latin-1."""
    key = headers.get("Idempotency-Key") if headers else None
    if isinstance(key, str):
        headers["Idempotency-Key"] = key.encode().decode("latin-1")


def kinds(body):
    """The kinds that a body defines: itself, or those that it lists."""
    if not isinstance(body, dict):
        return []
    listed = body.get("kinds")
    return [each for each in [body, *(listed if isinstance(listed, list) else [])] if isinstance(each, dict)]


def differ(kind):
    """No two limits of a kind are of one sort by the same fields: a rule between items, which no schema can tell."""
    if isinstance(kind.get("limits"), list):
        kind["limits"] = list({sort_and_fields(limit): limit for limit in kind["limits"]}.values())


def sort_and_fields(limit):
    by = limit.get("by", [])
    sort = "ordered" if limit.get("ordered") else "rate" if limit.get("concurrency") is None else "concurrency"
    return sort, tuple([by] if isinstance(by, str) else by)


def without_nul(value):
    """What a definition keeps has no NUL in it, however deep: no schema can tell that of any JSON."""
    if isinstance(value, dict):
        return {without_nul(name): without_nul(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_nul(each) for each in value]
    return value.replace("\0", "") if isinstance(value, str) else value


def is_instant(text):
    try:
        return text is None or datetime.fromisoformat(text).tzinfo is not None
    except (TypeError, ValueError):
        return False


def part(number, task, fits):
    adjust(task, fits)
    bindings = task.get("bindings")
    if isinstance(bindings, dict) and all(isinstance(each, str | list) for each in bindings.values()):
        del task["bindings"]
    depends_on = task.get("depends_on")
    if isinstance(depends_on, list) and all(is_dependency(each) for each in depends_on):
        del task["depends_on"]
    if isinstance(task.get("idempotency_key"), str) and task["idempotency_key"]:
        del task["idempotency_key"]
    if isinstance(task.get("name"), str) and 0 < len(task["name"]) <= 200:
        task["name"] = f"{number}{task['name']}"[:200]


def is_dependency(each):
    if isinstance(each, dict):
        policies = (None, "fail", "continue", "cancel_job")
        return isinstance(each.get("name"), str) and each.get("on_failure") in policies and each.keys() <= KNOWN
    return isinstance(each, str)
