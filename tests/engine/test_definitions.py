"""Documents of queues, kinds and the organization: whole, checked, and never over what nobody has seen."""

import asyncio
from typing import Any

import pytest

from engine.making import ME, Bench
from perdure.engine.definitions import ANY, NONE
from perdure.engine.requests import KindDefinition, Principal
from perdure.errors import Invalid, NotFound, Overloaded, PreconditionFailed, TooLarge
from perdure.store.wakeups import Topic

STRANGER = Principal("them", "other")


async def test_a_document_is_read_as_it_was_put_and_its_tag_is_of_what_it_says(bench: Bench) -> None:
    engine = bench.engine
    assert await engine.definition("queue", "mail", ME) is None
    made = await engine.put_definition("queue", "mail", {"paused": True, "depth": 5}, ME)
    assert (made.created, made.value) == (True, {"paused": True, "depth": 5})
    assert await engine.definition("queue", "mail", ME) == made._replace(created=False)
    changed = await engine.put_definition("queue", "mail", {"depth": None}, ME)
    assert (changed.created, changed.value) == (False, {"depth": None})
    assert changed.etag != made.etag


async def test_a_put_over_what_nobody_expected_changes_nothing(bench: Bench) -> None:
    engine = bench.engine
    with pytest.raises(PreconditionFailed):
        await engine.put_definition("queue", "mail", {}, ME, ANY)
    first = await engine.put_definition("queue", "mail", {"depth": 1}, ME, NONE)
    second = await engine.put_definition("queue", "mail", {"depth": 2}, ME, first.etag)
    for expected in (NONE, first.etag, "nonsense"):
        with pytest.raises(PreconditionFailed) as refused:
            await engine.put_definition("queue", "mail", {"depth": 3}, ME, expected)
        assert refused.value.fields["etag"] == second.etag
        with pytest.raises(PreconditionFailed):
            await engine.delete_definition("queue", "mail", ME, expected)
    assert await engine.definition("queue", "mail", ME) == second
    assert (await engine.put_definition("queue", "mail", {"depth": 3}, ME, ANY)).value == {"depth": 3}


async def test_of_many_who_saw_the_same_one_wins(bench: Bench) -> None:
    seen = await bench.engine.put_definition("queue", "mail", {}, ME)
    puts = (bench.engine.put_definition("queue", "mail", {"depth": each}, ME, seen.etag) for each in range(10))
    answers = await asyncio.gather(*puts, return_exceptions=True)
    assert sum(isinstance(each, PreconditionFailed) for each in answers) == 9


async def test_a_tag_from_before_a_delete_does_not_fit_what_came_after(bench: Bench) -> None:
    engine = bench.engine
    first = await engine.put_definition("queue", "mail", {"depth": 1}, ME)
    assert await engine.delete_definition("queue", "mail", ME, first.etag)
    assert not await engine.delete_definition("queue", "mail", ME)
    assert await engine.definition("queue", "mail", ME) is None
    await engine.put_definition("queue", "mail", {"depth": 2}, ME)
    with pytest.raises(PreconditionFailed):
        await engine.put_definition("queue", "mail", {"depth": 3}, ME, first.etag)


@pytest.mark.parametrize(
    ("type", "name", "value", "field"),
    [
        ("queue", "mail", {"paused": "yes"}, "paused"),
        ("queue", "mail", {"dead_letters": 1}, "dead_letters"),
        ("queue", "mail", {"depth": -1}, "depth"),
        ("queue", "mail", {"depth": True}, "depth"),
        ("queue", "mail", {"colour": "red"}, "colour"),
        ("queue", "no spaces", {}, "queue"),
        ("organization", "default", {"dead_letters": True}, "dead_letters"),
        ("kind", "work", {"timeout": -1}, "timeout"),
        ("kind", "work", {"timeout": "soon"}, "timeout"),
        ("kind", "work", {"kind": "other"}, "kind"),
        ("kind", "work", {"colour": "red"}, "colour"),
        ("kind", "work", {"schema": {"type": "nonsense"}}, "schema"),
        ("kind", "work", {"on_loss": "never"}, "on_loss"),
        ("job", "mail", {}, "type"),
    ],
)
async def test_what_breaks_a_rule_is_refused_with_its_field(
    bench: Bench, type: Any, name: str, value: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await bench.engine.put_definition(type, name, value, ME)
    assert refused.value.fields["field"] == field
    assert await bench.store.definitions.list(ME.organization, "queue") == []
    assert await bench.store.definitions.list(ME.organization, "kind") == []


async def test_a_schema_that_is_too_large_is_refused(bench: Bench) -> None:
    with pytest.raises(TooLarge):
        await bench.engine.put_definition("kind", "work", {"schema": {"title": "x" * 300_000}}, ME)


async def test_an_organization_has_its_own_document_and_no_others(bench: Bench) -> None:
    engine = bench.engine
    for type, name in (("organization", "other"), ("organization", "default")):
        by = ME if name == "other" else STRANGER
        with pytest.raises(NotFound):
            await engine.definition(type, name, by)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await engine.put_definition(type, name, {"paused": True}, by)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await engine.delete_definition(type, name, by)  # type: ignore[arg-type]
    await engine.put_definition("queue", "mail", {"depth": 1}, ME)
    assert await engine.definition("queue", "mail", STRANGER) is None
    assert not await engine.delete_definition("queue", "mail", STRANGER)


async def test_a_paused_organization_claims_nothing_until_it_is_resumed(bench: Bench) -> None:
    await bench.worker()
    await bench.submit()
    await bench.engine.put_definition("organization", "default", {"paused": True}, ME)
    assert await bench.engine.claim("w", 1) == []
    hints = bench.store.wakeups.subscribe(Topic.READY)
    await bench.engine.put_definition("organization", "default", {"paused": False}, ME)
    assert await hints.wait(1) == Topic.READY
    hints.close()
    await bench.lease()


async def test_an_organizations_depth_bounds_all_that_waits_in_it(bench: Bench) -> None:
    await bench.engine.put_definition("organization", "default", {"depth": 2}, ME)
    await bench.submit(queue="one")
    await bench.submit(queue="two")
    assert isinstance(await bench.refusal(queue="three"), Overloaded)
    await bench.engine.delete_definition("organization", "default", ME)
    await bench.submit(queue="three")


async def test_a_kind_that_is_put_holds_for_the_next_task(bench: Bench) -> None:
    await bench.engine.put_definition("kind", "work", {"priority": 8, "retry": {"max_attempts": 7}}, ME)
    task = await bench.view(await bench.submit())
    assert (task.priority, task.max_attempts) == (8, 7)
    declared = await bench.engine.definition("kind", "work", ME)
    assert declared is not None
    await bench.engine.declare([KindDefinition(kind="work", priority=3)], ME)
    again = await bench.engine.definition("kind", "work", ME)
    assert again is not None
    assert again.etag != declared.etag
    assert await bench.engine.delete_definition("kind", "work", ME, again.etag)
    assert (await bench.view(await bench.submit())).priority == 4
