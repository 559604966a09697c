"""Documents and their versions."""

import asyncio

import pytest

from backends.sqlite.notes import make_table
from perdure.errors import Conflict
from perdure.store.sqlite.store import SqliteStore
from perdure.store.wakeups import Topic


async def test_versions_grow_with_the_puts(store: SqliteStore):
    put = store.definitions.put
    first, second = [(await put("o", "queue", "q", text, "me")).version for text in ("{}", '{"paused":true}')]
    stored = await store.definitions.get("o", "queue", "q")
    assert stored is not None
    assert first < second
    assert (stored.version, stored.document) == (second, '{"paused":true}')


async def test_a_put_over_another_version_is_a_conflict_and_changes_nothing(store: SqliteStore):
    put = store.definitions.put
    await put("o", "queue", "q", "{}", "me", expected=0)
    for expected in (0, 2):
        with pytest.raises(Conflict, match="version 1"):
            await put("o", "queue", "q", '{"depth":1}', "me", expected=expected)
    with pytest.raises(Conflict, match="version 0"):
        await put("o", "queue", "absent", "{}", "me", expected=1)
    assert [each.document for each in await store.definitions.list("o", "queue")] == ["{}"]


async def test_of_many_who_put_over_the_same_version_one_wins(threaded: SqliteStore):
    answers = await asyncio.gather(
        *(threaded.definitions.put("o", "queue", "q", f"[{n}]", "me", expected=0) for n in range(20)),
        return_exceptions=True,
    )
    assert sum(not isinstance(answer, Conflict) for answer in answers) == 1


async def test_organizations_and_types_do_not_meet(store: SqliteStore):
    put = store.definitions.put
    await put("o", "queue", "b", "{}", "me")
    await put("o", "queue", "a", "{}", "me")
    await put("o", "kind", "a", "{}", "me")
    await put("p", "queue", "a", "{}", "me")
    assert [each.name for each in await store.definitions.list("o", "queue")] == ["a", "b"]


async def test_what_is_removed_is_gone_once_and_is_another_when_it_comes_again(store: SqliteStore):
    first = await store.definitions.put("o", "queue", "q", "{}", "me")
    assert [await store.definitions.delete("o", "queue", "q", "me") for _ in range(2)] == [True, False]
    assert await store.definitions.get("o", "queue", "q") is None
    assert (await store.definitions.put("o", "queue", "q", "{}", "me", expected=0)).version > first.version


async def test_a_change_is_announced(store: SqliteStore):
    await make_table(store)
    waiter = store.wakeups.subscribe(Topic.CONTROL)
    await waiter.wait(0.0)
    await store.definitions.put("o", "queue", "q", "{}", "me")
    assert await waiter.wait(30.0) == Topic.CONTROL
    waiter.close()
