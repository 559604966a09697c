"""The coalescer by itself: what gathers, what one flush takes, and how answers find their callers."""

import asyncio
import threading
from typing import NamedTuple

import pytest

from perdure.errors import Misuse, StoreBusy
from perdure.flush import Backlog, Call, deliver, grouped, merged, share


class Verb(NamedTuple):
    rank: int = 0
    max_items: int = 100


async def test_calls_that_have_gathered_are_taken_together():
    backlog = Backlog()
    for item in range(3):
        backlog.add(Verb(), [item])

    assert [call.items for call in backlog.take()] == [[0], [1], [2]]
    assert backlog.take() == []


async def test_a_flush_takes_no_more_items_than_its_bound():
    backlog = Backlog(flush_max_items=5)
    for _ in range(4):
        backlog.add(Verb(), ["a", "b"])

    assert [len(backlog.take()), len(backlog.take())] == [2, 2]


async def test_a_flush_takes_no_more_items_of_an_operation_than_its_bound():
    backlog, verb = Backlog(), Verb(max_items=3)
    for _ in range(4):
        backlog.add(verb, ["a", "b"])

    assert len(backlog.take()) == 1


async def test_a_call_over_every_bound_travels_alone():
    backlog, verb = Backlog(flush_max_items=2), Verb(max_items=2)
    backlog.add(verb, range(50))
    backlog.add(verb, ["next"])

    assert [len(call.items) for call in backlog.take()] == [50]
    assert [call.items for call in backlog.take()] == [["next"]]


async def test_too_much_that_waits_turns_callers_away_until_some_is_taken():
    backlog = Backlog(max_items=3)
    backlog.add(Verb(), range(3))

    with pytest.raises(StoreBusy):
        backlog.add(Verb(), [1])
    backlog.take()
    backlog.add(Verb(), [1])


async def test_a_closed_backlog_refuses_but_gives_what_it_has():
    backlog = Backlog()
    backlog.add(Verb(), [1])
    backlog.close()

    with pytest.raises(Misuse):
        backlog.add(Verb(), [2])
    assert backlog.wait(None)
    assert len(backlog.take()) == 1


def test_operations_go_by_rank_and_calls_of_one_as_they_came():
    settle, claim = Verb(rank=1), Verb(rank=2)
    groups = grouped([Call(claim, ["c1"]), Call(settle, ["s1"]), Call(claim, ["c2"])])

    assert [merged(group) for group in groups] == [["s1"], ["c1", "c2"]]


def test_each_call_gets_its_own_part_of_the_results():
    calls = [Call(Verb(), ["a"]), Call(Verb(), []), Call(Verb(), ["b", "c"])]
    share(calls, [1, 2, 3])

    assert [call.results for call in calls] == [[1], [], [2, 3]]


async def test_a_cancelled_caller_leaves_the_others_their_answers():
    backlog, verb = Backlog(), Verb()
    gone, stays = backlog.add(verb, ["a"]), backlog.add(verb, ["b"])
    gone.cancel()
    calls = backlog.take()
    share(calls, ["A", "B"])
    deliver(calls)

    assert await stays == ["B"]
    assert gone.cancelled()


async def test_an_error_reaches_its_caller_only():
    backlog, verb = Backlog(), Verb()
    refused, accepted = backlog.add(verb, ["a"]), backlog.add(verb, ["b"])
    first, second = backlog.take()
    first.error, second.results = StoreBusy("locked"), ["B"]
    deliver([first, second])

    assert await accepted == ["B"]
    with pytest.raises(StoreBusy):
        await refused


async def test_callers_on_several_loops_share_a_flush():
    backlog, verb = Backlog(), Verb()
    answers: list[list[object]] = []

    def on_another_loop() -> None:
        async def ask() -> None:
            answers.append(await backlog.add(verb, ["there"]))

        asyncio.run(ask())

    thread = threading.Thread(target=on_another_loop)
    thread.start()
    here = backlog.add(verb, ["here"])
    calls = []
    while len(calls) < 2:
        backlog.wait(1.0)
        calls += backlog.take()
    for call in calls:
        call.results = [f"{item} answered" for item in call.items]
    deliver(calls)

    assert await here == ["here answered"]
    await asyncio.to_thread(thread.join)
    assert answers == [["there answered"]]


def test_a_loop_that_has_closed_costs_nobody_else_an_answer():
    backlog, verb = Backlog(), Verb()
    closed = asyncio.new_event_loop()

    async def add() -> None:
        backlog.add(verb, ["a"])

    closed.run_until_complete(add())
    closed.close()

    async def ask() -> list[object]:
        answer = backlog.add(verb, ["b"])
        calls = backlog.take()
        share(calls, ["A", "B"])
        deliver(calls)
        return await answer

    assert asyncio.run(ask()) == ["B"]


def test_a_waiting_flusher_is_woken_by_the_first_call():
    backlog = Backlog()
    woken: list[bool] = []
    flusher = threading.Thread(target=lambda: woken.append(backlog.wait(30.0)))
    flusher.start()

    async def add() -> None:
        backlog.add(Verb(), [1])

    asyncio.run(add())
    flusher.join(10)
    assert woken == [True]


def test_a_nudge_lets_a_waiting_flusher_look_around():
    backlog = Backlog()
    woken: list[bool] = []
    flusher = threading.Thread(target=lambda: woken.append(backlog.wait(None)))
    flusher.start()
    while flusher.is_alive():
        backlog.nudge()
        flusher.join(0.01)

    assert woken == [False]
