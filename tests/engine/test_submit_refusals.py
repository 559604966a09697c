"""A submit that breaks a rule is refused with the field named, and nothing of it is stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from engine.making import KIND, ME, Bench
from perdure.domain import limits
from perdure.domain.retry import Retry
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.requests import TaskRequest
from perdure.errors import Invalid, Refused, TooLarge
from perdure.store.ledger import Submitted
from perdure.store.views import TaskFilter

DAY = 86_400.0


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", ""),
        ("kind", "a b"),
        ("kind", ".hidden"),
        ("kind", "k" * (limits.KIND_MAX_CHARS + 1)),
        ("kind", "käse"),
        ("kind", None),
        ("kind", ["list"]),
        ("queue", ""),
        ("queue", "q" * (limits.QUEUE_MAX_CHARS + 1)),
        ("queue", "line\nbreak"),
        ("priority", -1),
        ("priority", 10),
        ("priority", 4.5),
        ("priority", True),
        ("priority", "4"),
        ("delay", -0.001),
        ("delay", float("nan")),
        ("delay", float("inf")),
        ("delay", 1.7e308),
        ("ttl", -1.7e308),
        ("timeout", 10**400),
        ("delay", limits.DELAY_MAX_US / 1e6 + 1),
        ("delay", "soon"),
        ("run_at", datetime(2030, 1, 1)),  # noqa: DTZ001
        ("run_at", datetime(1960, 1, 1, tzinfo=UTC)),
        ("run_at", datetime(9999, 1, 1, tzinfo=UTC)),
        ("run_at", 5),
        ("ttl", 0),
        ("ttl", -1.0),
        ("ttl", float("inf")),
        ("timeout", 0),
        ("timeout", 31 * DAY),
        ("execution_limit", 0.5),
        ("execution_limit", 31 * DAY),
        ("lease", 4.9),
        ("lease", 3601),
        ("max_attempts", 0),
        ("max_attempts", limits.MAX_ATTEMPTS_LIMIT + 1),
        ("max_attempts", 1.0),
        ("max_losses", 0),
        ("on_loss", "shrug"),
        ("retry", {"max_attempts": 3}),
        ("capabilities", "gpu"),
        ("capabilities", ["has space"]),
        ("capabilities", [f"c{n}" for n in range(limits.CAPABILITIES_MAX + 1)]),
        ("labels", ["x"]),
        ("labels", {f"l{n}": "v" for n in range(limits.LABELS_MAX + 1)}),
        ("labels", {"": "v"}),
        ("labels", {1: "v"}),
        ("labels", {"x" * (limits.LABEL_MAX_CHARS + 1): "v"}),
        ("labels", {"nul": "\x00"}),
        ("metadata", {"x": float("nan")}),
        ("idempotency_key", ""),
        ("idempotency_key", "k" * 256),
        ("idempotency_key", "ü" * 128),
        ("idempotency_key", "tab\t"),
        ("idempotency_key", "\ud800"),
        ("idempotency_key", 7),
        ("payload", {"x": float("nan")}),
        ("payload", {"x": [1, float("-inf")]}),
        ("payload", {"x": "\ud800"}),
        ("payload", {"\ud800": 1}),
        ("payload", {"x": object()}),
        ("payload", {"x": 10**5000}),
        ("payload", {("a", "b"): 1}),
        ("payload", deep(65)),
        ("payload", deep(100_000)),
        ("payload", msgspec.Raw(b"{")),
        ("payload", msgspec.Raw(b"")),
        ("payload", msgspec.Raw(b'"\xff"')),
        ("payload", msgspec.Raw(b'"\x00"')),
        ("payload", msgspec.Raw(b'"\\ud800"')),
        ("payload", msgspec.Raw(b"NaN")),
        ("payload", msgspec.Raw(b"1e400")),
        ("payload", msgspec.Raw(b"1" * 5000)),
        ("payload", msgspec.Raw(b"[" * 65 + b"]" * 65)),
        ("payload", msgspec.Raw(b"[" * 50_000)),
        ("payload", msgspec.Raw(b"{} {}")),
    ],
)
async def test_a_value_out_of_bounds_is_refused_with_its_field(bench: Bench, field: str, value: Any) -> None:
    refusal = await bench.refusal(**{field: value})
    assert isinstance(refusal, Invalid)
    assert refusal.fields["field"].split(".")[0].split("[")[0] == field
    assert refusal.fields["field"].split(".")[0] in refusal.message
    assert "\n" not in refusal.message
    page = await bench.engine.views.tasks(ME.organization, TaskFilter(), 10)
    assert page.rows == []


async def test_what_cannot_be_encoded_is_named_by_its_path(bench: Bench) -> None:
    assert (await bench.refusal(payload={"a": [1, {"b": float("nan")}]})).fields["field"] == "payload.a[1].b"
    assert (await bench.refusal(payload={"a": [1, {"b": object()}]})).fields["field"] == "payload.a[1].b"
    assert (await bench.refusal(payload={"a": {"b": "\udfff"}})).fields["field"] == "payload.a.b"


async def test_a_payload_over_the_limit_tells_both_sizes(bench: Bench) -> None:
    refusal = await bench.refusal(payload="x" * limits.PAYLOAD_MAX_BYTES)
    assert isinstance(refusal, TooLarge)
    assert refusal.fields["limit_bytes"] == limits.PAYLOAD_MAX_BYTES
    assert refusal.fields["actual_bytes"] == limits.PAYLOAD_MAX_BYTES + 2
    assert await bench.submit(payload="x" * (limits.PAYLOAD_MAX_BYTES - 2))


async def test_metadata_over_the_limit_is_too_large(bench: Bench) -> None:
    refusal = await bench.refusal(metadata="x" * limits.METADATA_MAX_BYTES)
    assert isinstance(refusal, TooLarge)
    assert refusal.fields["field"] == "metadata"


async def test_delay_and_run_at_exclude_each_other(bench: Bench) -> None:
    soon = datetime.fromtimestamp(bench.clock.wall_us() / 1e6, UTC) + timedelta(hours=1)
    refusal = await bench.refusal(delay=1.0, run_at=soon)
    assert refusal.fields["field"] == "run_at"


async def test_a_ttl_that_ends_before_the_delay_is_refused(bench: Bench) -> None:
    refusal = await bench.refusal(delay=10.0, ttl=5.0)
    assert refusal.fields["field"] == "ttl"


async def test_one_bad_request_does_not_touch_the_others(bench: Bench) -> None:
    requests = [TaskRequest(kind=KIND, payload=n, priority=99 if n == 3 else None) for n in range(6)]
    answers = await bench.engine.submit(requests, ME)
    assert [isinstance(answer, Submitted) for answer in answers] == [True, True, True, False, True, True]
    for n, answer in enumerate(answers):
        if isinstance(answer, Submitted):
            payload = (await bench.view(answer.id)).payload
            assert payload is not None
            assert payload.data == str(n).encode()


async def test_nothing_asked_is_nothing_answered(bench: Bench) -> None:
    assert await bench.engine.submit([], ME) == []


async def test_too_many_tasks_in_one_call_are_refused_whole(bench: Bench) -> None:
    request = TaskRequest(kind=KIND)
    with pytest.raises(Invalid, match="split it"):
        await bench.engine.submit([request] * (limits.SUBMIT_MAX_TASKS + 1), ME)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payload_max_bytes", 0),
        ("payload_max_bytes", limits.PAYLOAD_MAX_BYTES + 1),
        ("lease", 1.0),
        ("execution_limit", 0.1),
        ("cancel_grace", -1.0),
        ("unroutable_after", float("nan")),
        ("worker_active", 0.0),
        ("retention", -1.0),
    ],
)
def test_a_setting_out_of_bounds_is_refused_with_its_name(field: str, value: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        EngineSettings(**{field: value})
    assert refusal.value.fields["field"] == field
    assert field in str(refusal.value)


@pytest.mark.parametrize(
    "value",
    [deep(64), {"x": None}, "\x00", "🙂", 2**80, [], {}, None, 1.5, msgspec.Raw(b' {"a": 1} '), {"NaN": "null"}],
)
async def test_every_json_value_within_bounds_is_stored_as_it_is(bench: Bench, value: Any) -> None:
    view = await bench.view(await bench.submit(payload=value))
    assert view.payload is not None
    expected = msgspec.json.decode(bytes(value)) if isinstance(value, msgspec.Raw) else value
    assert msgspec.json.decode(view.payload.data) == expected


async def test_a_refusal_is_a_value_of_the_error_tree(bench: Bench) -> None:
    refusal = await bench.refusal(retry=Retry(max_attempts=2), max_attempts=0)
    assert isinstance(refusal, Refused)
