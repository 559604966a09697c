"""Plain tasks of the same terms are written by a statement of their own, unless there is more to look at."""

from typing import Any

import pytest

from backends.postgres.crew import Watched, Writer, task
from backends.postgres.opened import one, opened, plain
from perdure.domain.limits import SECOND_US
from perdure.domain.states import TaskState
from perdure.domain.task import Alike
from perdure.errors import Invalid, Overloaded, PerdureError
from perdure.store.ledger import Submitted
from perdure.store.postgres import submission
from perdure.store.postgres.store import PostgresStore

QUEUED = "SELECT array_agg(id ORDER BY seq) FROM perdure_live JOIN perdure_tasks USING (n) WHERE state = 'queued'"
COUNTED = "SELECT sum(change)::bigint FROM perdure_count_changes WHERE state = 'queued'"
PAYLOADS = ('{"n":1}', '"ä\\u0000\\\\x00"', "[]", "null")


async def submit(store: PostgresStore, ids: str, **given: Any) -> list[Submitted | PerdureError]:
    """Submit a task for each letter, in one call."""
    return await store.ledger.submit([task(id, **given) for id in ids])


def told(ids: str, *again: str) -> list[Submitted]:
    """The answers for tasks that are queued, some of which were so already."""
    return [Submitted(id, TaskState.QUEUED, id in again) for id in ids]


@pytest.mark.parametrize(
    ("given", "statement"),
    [
        ([{}], "submit_one"),
        ([{}, {}], "submit_alike"),
        ([{"ttl_us": 5}, {"ttl_us": 5}], "submit_alike"),
        ([{}, {"kind": "more"}], "submit"),
        ([{}, {"delay_us": 5}], "submit"),
        ([{"encoding": "cbor", "payload": "AA=="}] * 2, "submit"),
        ([{}, {"idempotency_key": "k", "request_hash": "h"}], "submit"),
    ],
)
def test_what_is_not_alike_goes_by_the_statement_for_everything(
    postgres_database: str, given: list[dict[str, Any]], statement: str
) -> None:
    writer = Writer(postgres_database)
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    tasks = [task(str(place), **each) for place, each in enumerate(given)]
    assert len(submission.submit(tx, tasks, writer.lanes)) == len(tasks)
    assert [name for name in tx.given if name.startswith("submit")] == [statement]
    writer.session.roll_back()
    writer.close()


async def test_plain_tasks_stand_in_line_as_they_came_with_what_they_carry(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        tasks = [task(id, payload=payload, ttl_us=SECOND_US) for id, payload in zip("dcba", PAYLOADS, strict=True)]
        assert await store.ledger.submit(tasks) == told("dcba")
        with plain(postgres_database) as other:
            assert one(other, QUEUED) == [*"dcba"]
            assert one(other, COUNTED) == 4
            stored = "SELECT array_agg(convert_from(payload, 'UTF8') ORDER BY n) FROM perdure_tasks"
            assert one(other, stored) == [*PAYLOADS]
            expiring = "SELECT count(*) FROM perdure_live WHERE expires_us = queued_us + %s AND due_us = queued_us"
            assert one(other, expiring, SECOND_US) == 4


class Counted(Alike):
    """Counts how often an object is made of one of them."""

    __slots__ = ("made",)

    def __init__(self, ids: str, **given: Any) -> None:
        payloads = [PAYLOADS[place % len(PAYLOADS)].encode() for place in range(len(ids))]
        super().__init__([*ids], payloads, task("", **given).terms)
        self.made = 0

    def __getitem__(self, place: Any) -> Any:
        self.made += 1
        return super().__getitem__(place)


@pytest.mark.parametrize("ids", ["dcba", "a"])
async def test_plain_tasks_in_columns_are_written_without_an_object_for_each(postgres_database: str, ids: str) -> None:
    async with opened(postgres_database) as store:
        tasks = Counted(ids, ttl_us=SECOND_US)
        assert await store.ledger.submit(tasks) == told(ids)
        assert tasks.made == 0
        with plain(postgres_database) as other:
            assert one(other, QUEUED) == [*ids]
            assert one(other, COUNTED) == len(ids)
            stored = "SELECT array_agg(convert_from(payload, 'UTF8') ORDER BY n) FROM perdure_tasks"
            assert one(other, stored) == [*PAYLOADS[: len(ids)]]


async def test_tasks_in_columns_that_are_not_free_are_answered_as_others(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        assert await store.ledger.submit(Counted("ab")) == told("ab")
        assert await store.ledger.submit(Counted("bc")) == told("bc", "b")
        twice = Submitted("e", TaskState.QUEUED, True)
        assert await store.ledger.submit(Counted("ee")) == [twice._replace(replayed=False), twice]
        (refused,) = await store.ledger.submit(Counted("f", ttl_us=0))
        assert isinstance(refused, Invalid)
        with plain(postgres_database) as other:
            assert one(other, QUEUED) == [*"abce"]


async def test_what_was_submitted_already_is_answered_as_that(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        assert await submit(store, "ab") == told("ab")
        assert await submit(store, "ab") == told("ab", "a", "b")
        assert await submit(store, "cbd") == told("cbd", "b")
        twice = Submitted("e", TaskState.QUEUED, True)
        assert await submit(store, "ee") == [twice._replace(replayed=False), twice]
        with plain(postgres_database) as other:
            assert one(other, QUEUED) == [*"abcde"]
            assert one(other, COUNTED) == 5


async def test_a_depth_is_looked_at(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        await store.definitions.put("default", "queue", "default", '{"depth":3}', "bob")
        assert await submit(store, "ab") == told("ab")
        admitted, refused = await submit(store, "cd")
        assert [admitted] == told("c")
        assert isinstance(refused, Overloaded)
        with plain(postgres_database) as other:
            assert one(other, QUEUED) == [*"abc"]


async def test_one_that_the_server_refuses_costs_the_others_nothing(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        first, refused, last = await store.ledger.submit([task("a"), task("b\x00"), task("c")])
        assert [first, last] == told("ac")
        assert isinstance(refused, Invalid)
        with plain(postgres_database) as other:
            assert one(other, QUEUED) == [*"ac"]
