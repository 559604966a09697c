"""Submits of many callers travel together, and fail apart."""

import asyncio

import pytest

from perdure.client.gathering import SENDS_MAX, Gathering
from perdure.domain.states import TaskState
from perdure.errors import Invalid, Misuse, StoreUnreachable, TooLarge
from perdure.store.ledger import Submitted


class Gateway:
    """Answers submits when it is let to."""

    def __init__(self, refuses=()):
        self.requests = []
        self.refuses = refuses
        self.open = asyncio.Event()
        self.away = False

    async def __call__(self, items):
        self.requests.append(list(items))
        await self.open.wait()
        if self.away:
            raise StoreUnreachable("away")
        if len(items) > 1 and any(item in self.refuses for item in items):
            raise TooLarge("all of it")
        return [
            Invalid("this one") if item in self.refuses else Submitted(item.decode(), TaskState.QUEUED, False)
            for item in items
        ]


async def callers(gathering, items):
    tasks = [asyncio.create_task(gathering([item])) for item in items]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_what_comes_while_requests_are_under_way_goes_together():
    gateway = Gateway()
    gathering = Gathering(gateway)
    tasks = await callers(gathering, [b"%d" % number for number in range(10)])
    for _ in range(5):
        await asyncio.sleep(0)
    gateway.open.set()
    answers = await asyncio.gather(*tasks)
    assert [answer[0].id for answer in answers] == [str(number) for number in range(10)]
    assert len(gateway.requests) <= SENDS_MAX + 1


async def test_who_is_at_fault_fails_alone():
    gateway = Gateway(refuses=(b"3",))
    gateway.open.set()
    tasks = await callers(Gathering(gateway), [b"1", b"2", b"3", b"4"])
    answers = [answer[0] for answer in await asyncio.gather(*tasks)]
    assert [type(answer) for answer in answers] == [Submitted, Submitted, Invalid, Submitted]


async def test_everybody_is_told_when_the_gateway_is_away_each_by_an_error_of_their_own():
    gateway = Gateway()
    gateway.away = True
    gateway.open.set()
    tasks = await callers(Gathering(gateway), [b"1", b"2"])
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in errors] == [StoreUnreachable, StoreUnreachable]
    assert errors[0] is not errors[1]


async def test_a_cancelled_caller_does_not_take_the_others_along():
    gateway = Gateway()
    tasks = await callers(Gathering(gateway), [b"1", b"2", b"3"])
    tasks[1].cancel()
    await asyncio.wait([tasks[1]])
    gateway.open.set()
    assert [answer[0].id for answer in await asyncio.gather(tasks[0], tasks[2])] == ["1", "3"]
    assert sorted(item for items in gateway.requests for item in items) == [b"1", b"2", b"3"]


async def test_closing_tells_whoever_waits():
    gathering = Gathering(Gateway())
    tasks = await callers(gathering, [b"1", b"2"])
    await gathering.close()
    for task in tasks:
        with pytest.raises(Misuse, match="may have been stored"):
            await task
    with pytest.raises(Misuse, match="closed"):
        await gathering([b"3"])
