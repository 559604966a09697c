"""Kinds are declared by workers, kept by the store, and hold submitters to their schema."""

from typing import Any

import msgspec
import pytest

from engine.making import KIND, ME, Bench
from perdure.domain.retry import Retry
from perdure.engine.requests import JobRequest, JobTaskRequest, KindDefinition, Principal
from perdure.errors import Invalid
from perdure.store.definitions import Definition
from perdure.store.ledger import Submitted

SCHEMA = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "object", "required": ["id"]}}},
    "required": ["rows"],
}


async def test_a_payload_that_breaks_the_schema_is_refused_with_its_path(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, schema=SCHEMA)], ME)
    assert (await bench.refusal(payload={})).fields["field"] == "payload"
    assert (await bench.refusal(payload={"rows": [{"id": 1}, {}]})).fields["field"] == "payload.rows[1]"
    assert isinstance(await bench.answer(payload={"rows": [{"id": 1}]}), Submitted)


async def test_all_that_is_wrong_with_a_payload_is_told_at_once(bench: Bench) -> None:
    types = {"to": {"type": "string"}, "cents": {"type": "integer"}}
    schema = {"type": "object", "properties": types, "required": ["to", "cents"]}
    await bench.engine.declare([KindDefinition(kind=KIND, schema=schema)], ME)
    message = (await bench.refusal(payload={"cents": "ten"})).message
    assert "payload.cents" in message
    assert '"to" is a required property' in message
    many = {"type": "object", "additionalProperties": {"type": "integer"}}
    await bench.engine.declare([KindDefinition(kind=KIND, schema=many)], ME)
    assert (await bench.refusal(payload=dict.fromkeys(map(str, range(9)), "x"))).message.count("not of type") == 5


async def test_a_text_that_the_handler_cannot_read_is_refused_with_what_it_must_be_like(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string", "x-perdure-read-as": "date"}}}
    await bench.engine.declare([KindDefinition(kind=KIND, schema=schema)], ME)
    refusal = await bench.refusal(payload={"day": "yesterday"})
    assert refusal.fields["field"] == "payload.day"
    assert refusal.message.endswith("'yesterday' is not a date like 2026-12-01")
    assert isinstance(await bench.answer(payload={"day": "2026-12-01"}), Submitted)


@pytest.mark.parametrize("nothing", [None, msgspec.Raw(b"null")], ids=["None", "null"])
async def test_a_payload_that_says_nothing_is_an_object_without_fields_where_the_kind_takes_one(
    bench: Bench, nothing: Any
) -> None:
    for kind, schema in (("fields", {"type": "object"}), ("any", {}), ("nothing", {"type": "null"})):
        await bench.engine.declare([KindDefinition(kind=kind, schema=schema)], ME)
    await bench.engine.declare([KindDefinition(kind=KIND, schema=SCHEMA), KindDefinition(kind="bare")], ME)
    kinds = ("fields", "any", "nothing", "bare", "unknown")
    views = [await bench.view(await bench.submit(kind=kind, payload=nothing)) for kind in kinds]
    assert [view.payload and view.payload.data for view in views] == [b"{}", b"null", b"null", b"null", b"null"]
    refusal = await bench.refusal(payload=nothing)
    assert (refusal.fields["field"], '"rows" is a required property' in refusal.message) == ("payload", True)
    job = JobRequest(name="j", tasks=[JobTaskRequest(kind="fields", name="a", payload=nothing)])
    of_job = await bench.view((await bench.engine.submit_job(job, ME)).task_ids["a"])
    assert of_job.payload is not None
    assert of_job.payload.data == b"{}"


async def test_a_raw_payload_is_held_to_the_schema_too(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, schema=SCHEMA)], ME)
    assert (await bench.refusal(payload=msgspec.Raw(b'{"rows": 1}'))).fields["field"] == "payload.rows"


async def test_kinds_of_another_organization_hold_nobody_here(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, schema=SCHEMA)], Principal("me", "other"))
    assert isinstance(await bench.answer(payload={}), Submitted)


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        (KindDefinition(kind="no good"), "kind"),
        (KindDefinition(kind=KIND, schema={"type": "objekt"}), "schema"),
        (KindDefinition(kind=KIND, schema={"$ref": "http://127.0.0.1:9/schema.json"}), "schema"),
        (KindDefinition(kind=KIND, schema=[]), "schema"),  # type: ignore[arg-type]
        (KindDefinition(kind=KIND, schema={"enum": ["a", "\0"]}), "schema.enum[1]"),
        (KindDefinition(kind=KIND, lease=1.0), "lease"),
        (KindDefinition(kind=KIND, priority=11), "priority"),
        (KindDefinition(kind=KIND, queue=""), "queue"),
        (KindDefinition(kind=KIND, on_loss="no"), "on_loss"),  # type: ignore[arg-type]
        (KindDefinition(kind=KIND, retention=-1), "retention"),
        (KindDefinition(kind=KIND, retention={"running": 1}), "retention"),
        (KindDefinition(kind=KIND, retention={"failed": -1}), "retention.failed"),
        (KindDefinition(kind=KIND, result_retention=-1), "result_retention"),
    ],
)
async def test_a_bad_definition_is_refused_and_none_is_stored(
    bench: Bench, definition: KindDefinition, field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await bench.engine.declare([KindDefinition(kind="good"), definition], ME)
    assert refusal.value.fields["field"] == field
    assert await bench.store.definitions.list(ME.organization, "kind") == []


async def test_declaring_the_same_again_writes_nothing(bench: Bench) -> None:
    definition = KindDefinition(kind=KIND, schema=SCHEMA, retry=Retry(7), capabilities=["b", "a"])
    await bench.engine.declare([definition], ME)
    (first,) = await bench.store.definitions.list(ME.organization, "kind")
    await bench.engine.declare([definition], ME)
    assert await bench.store.definitions.list(ME.organization, "kind") == [first]
    await bench.engine.declare([KindDefinition(kind=KIND, priority=1)], ME)
    (stored,) = await bench.store.definitions.list(ME.organization, "kind")
    assert stored.version == first.version + 1


async def test_those_who_declare_the_same_at_once_do_not_collide(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever one writes what nobody had declared, another is there with the same already."""
    put = bench.store.definitions.put

    async def put_too_late(*given: Any) -> Definition:
        await put(*given)
        return await put(*given)

    monkeypatch.setattr(bench.store.definitions, "put", put_too_late)
    await bench.engine.declare([KindDefinition(kind=KIND)], ME)
    (stored,) = await bench.store.definitions.list(ME.organization, "kind")
    await bench.engine.declare([KindDefinition(kind=KIND)], ME)
    assert await bench.store.definitions.list(ME.organization, "kind") == [stored]


async def test_a_paused_kind_stays_paused_whatever_its_workers_declare(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, priority=1)], ME)
    await bench.engine.put_definition("kind", KIND, {"kind": KIND, "priority": 1, "paused": True}, ME)
    await bench.engine.declare([KindDefinition(kind=KIND, priority=2)], ME)
    (kind,) = await bench.engine.kinds(ME)
    assert (kind.defaults.priority, kind.paused) == (2, True)
    await bench.engine.put_definition("kind", KIND, {"kind": KIND, "priority": 2}, ME)
    (kind,) = await bench.engine.kinds(ME)
    assert not kind.paused


async def test_keys_take_turns_by_the_fields_that_the_kind_names(bench: Bench) -> None:
    await bench.engine.declare([KindDefinition(kind=KIND, fair_by=["customer"])], ME)
    answers = [await bench.answer(payload={"customer": name}) for name in ("a", "a", "b")]
    assert [str(each.state) for each in answers] == ["queued", "pending", "queued"]


async def test_a_definition_that_nobody_here_understands_is_as_if_it_were_not_there(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.store.definitions.put(ME.organization, "kind", KIND, '{"kind": "work", "priority": 77}', "later")
    assert isinstance(await bench.answer(), Submitted)
    assert "ignored" in caplog.text
