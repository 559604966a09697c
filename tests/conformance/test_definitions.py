"""Versioned documents of queues, organizations and kinds."""

import asyncio

import pytest

from conformance.making import ORGANIZATION, World
from perdure.errors import Conflict
from perdure.store.definitions import Definition


async def test_a_document_is_read_as_it_was_put_and_its_version_grows(world: World) -> None:
    put, get = world.definitions.put, world.definitions.get
    assert await get(ORGANIZATION, "queue", "q") is None
    first = await put(ORGANIZATION, "queue", "q", '{"depth":1}', "bob")
    assert first == Definition(ORGANIZATION, "queue", "q", first.version, '{"depth":1}')
    second = await put(ORGANIZATION, "queue", "q", '{"depth":2}', "bob")
    assert second.version > first.version >= 1
    found = await get(ORGANIZATION, "queue", "q")
    assert found == Definition(ORGANIZATION, "queue", "q", second.version, '{"depth":2}')


async def test_a_put_over_another_version_than_expected_is_a_conflict(world: World) -> None:
    put = world.definitions.put
    there = (await put(ORGANIZATION, "queue", "q", "{}", "bob", expected=0)).version
    with world.unchanged():
        for expected in (0, there - 1, there + 1, 7):
            with pytest.raises(Conflict):
                await put(ORGANIZATION, "queue", "q", '{"depth":1}', "bob", expected=expected)
    assert (await put(ORGANIZATION, "queue", "q", '{"depth":1}', "bob", expected=there)).version > there


async def test_of_two_puts_over_one_version_one_wins(world: World) -> None:
    put = world.definitions.put
    answers = await asyncio.gather(
        *(put(ORGANIZATION, "queue", "q", f'{{"depth":{n}}}', "bob", expected=0) for n in range(10)),
        return_exceptions=True,
    )
    assert len([each for each in answers if isinstance(each, Definition)]) == 1
    assert len([each for each in answers if isinstance(each, Conflict)]) == 9


async def test_a_list_has_one_type_of_one_organization_by_name(world: World) -> None:
    put = world.definitions.put
    for organization, type, name in (
        (ORGANIZATION, "queue", "b"),
        (ORGANIZATION, "queue", "a"),
        (ORGANIZATION, "kind", "c"),
        ("other", "queue", "d"),
    ):
        await put(organization, type, name, "{}", "bob")  # type: ignore[arg-type]
    assert [each.name for each in await world.definitions.list(ORGANIZATION, "queue")] == ["a", "b"]


async def test_a_deleted_document_is_gone(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "q", "{}", "bob")
    assert not await world.definitions.delete("other", "queue", "q", "bob")
    assert await world.definitions.delete(ORGANIZATION, "queue", "q", "bob")
    assert not await world.definitions.delete(ORGANIZATION, "queue", "q", "bob")
    assert await world.definitions.get(ORGANIZATION, "queue", "q") is None


async def test_a_delete_of_another_version_than_expected_is_a_conflict(world: World) -> None:
    definitions = world.definitions
    assert not await definitions.delete(ORGANIZATION, "queue", "q", "bob", expected=3)
    first = await definitions.put(ORGANIZATION, "queue", "q", "{}", "bob")
    second = await definitions.put(ORGANIZATION, "queue", "q", '{"depth":1}', "bob")
    with world.unchanged(), pytest.raises(Conflict):
        await definitions.delete(ORGANIZATION, "queue", "q", "bob", expected=first.version)
    assert await definitions.delete(ORGANIZATION, "queue", "q", "bob", expected=second.version)
    assert await definitions.get(ORGANIZATION, "queue", "q") is None


async def test_a_version_never_comes_again_though_a_document_was_deleted_in_between(world: World) -> None:
    definitions = world.definitions
    versions = []
    for _ in range(3):
        versions.append((await definitions.put(ORGANIZATION, "queue", "q", "{}", "bob")).version)
        versions.append((await definitions.put(ORGANIZATION, "queue", "q", '{"depth":1}', "bob")).version)
        assert await definitions.delete(ORGANIZATION, "queue", "q", "bob")
        world.advance(1)
    assert versions == sorted(set(versions))
    await definitions.put(ORGANIZATION, "queue", "q", '{"depth":1}', "bob")
    with world.unchanged():
        for version in versions:
            with pytest.raises(Conflict):
                await definitions.delete(ORGANIZATION, "queue", "q", "bob", expected=version)
