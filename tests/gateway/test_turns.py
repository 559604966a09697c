"""Whoever asks for much waits behind itself, and not in front of others."""

import asyncio

import pytest

from gateway.asking import Asker, open_asker
from perdure import errors
from perdure.gateway.rates import Rates
from perdure.gateway.refusals import TooManyRequests
from perdure.gateway.turns import AT_ONCE_BESIDE_QUIET, Turn, Turns, cost_of

PATIENCE_SECONDS = 20.0


async def turned() -> None:
    """Let everybody go on who can."""
    for _ in range(10):
        await asyncio.sleep(0)


class Line:
    """Clients that ask for turns, in the order in which they get them."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.got: list[str] = []
        self.asking: list[asyncio.Task[None]] = []
        self._ended = 0
        self._news = asyncio.Event()

    async def ask(self, client: str, cost: float = 1.0, times: int = 1) -> None:
        for _ in range(times):
            self.asking.append(asyncio.create_task(self._ask(client, cost)))
            await turned()

    async def _ask(self, client: str, cost: float) -> None:
        await self.turns.begin(client, cost)
        self.got.append(client)
        self._news.set()

    async def play(self) -> list[str]:
        """End one turn after the other until nobody waits any more."""
        while self._ended < len(self.got):
            client = self.got[self._ended]
            self._ended += 1
            self.turns.end(client)
            await turned()
            if self._ended == len(self.got) and not all(each.done() for each in self.asking):
                await self._rested()
        return self.got

    async def _rested(self) -> None:
        """Whoever waits goes on after the rest that follows a batch."""
        await self.has(self._ended + 1)

    async def has(self, turns: int) -> None:
        """So many turns were given."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.got) < turns:
                self._news.clear()
                await self._news.wait()
        await turned()


async def test_a_lone_client_does_not_wait():
    line = Line(Turns(at_once=2, client_at_once=2))
    await line.ask("a", times=2)
    assert line.got == ["a", "a"]


async def test_who_asks_once_goes_before_who_asks_again_and_again():
    line = Line(Turns(at_once=1))
    await line.ask("greedy", times=5)
    await line.ask("good")
    assert await line.play() == ["greedy", "good", "greedy", "greedy", "greedy", "greedy"]


async def test_two_who_want_much_take_turns():
    line = Line(Turns(at_once=1))
    await line.ask("a", times=3)
    await line.ask("b", times=3)
    assert sorted((await line.play())[:4]) == ["a", "a", "b", "b"]


async def test_what_costs_much_counts_for_much():
    line = Line(Turns(at_once=1))
    await line.ask("big", cost=3.0, times=3)
    await line.ask("small", cost=1.0, times=6)
    got = await line.play()
    assert [got[:5].count(each) for each in ("big", "small")] == [2, 3]


async def test_a_client_has_no_more_under_way_than_it_may_though_there_is_room():
    line = Line(Turns(at_once=10, client_at_once=2))
    for name in ("a", "b"):
        line.turns.note(name)
    await line.ask("a", times=4)
    assert len(line.got) == 2
    await line.ask("b")
    assert line.got == ["a", "a", "b"]
    assert sorted(await line.play()) == ["a"] * 4 + ["b"]


async def test_who_is_alone_has_all_that_there_is():
    line = Line(Turns(at_once=10, client_at_once=2))
    line.turns.note("a")
    await line.ask("a", times=20)
    assert len(line.got) == 10
    assert len(await line.play()) == 20


async def test_who_was_quiet_has_saved_nothing_up():
    line = Line(Turns(at_once=1))
    await line.ask("a", times=3)
    await line.play()
    await line.ask("a", times=2)
    await line.ask("late", times=2)
    assert (await line.play())[3:] in (["a", "late", "a", "late"], ["a", "late", "late", "a"])


async def test_less_is_under_way_while_somebody_asks_now_and_then():
    line = Line(Turns(at_once=20, client_at_once=20))
    await line.ask("quiet")
    await line.ask("greedy", times=30)
    assert len(line.got) == 20
    await line.play()
    await line.ask("quiet")
    await line.ask("greedy", times=30)
    assert line.got[31] == "quiet"
    await line.has(32 + AT_ONCE_BESIDE_QUIET)
    assert len(line.got) == 32 + AT_ONCE_BESIDE_QUIET
    assert len(await line.play()) == 62


async def test_of_those_who_begin_at_the_same_place_the_one_goes_first_who_has_had_least():
    line = Line(Turns(at_once=1))
    await line.ask("quiet", cost=0.5)
    for name in ("a", "b", "c", "d"):
        await line.ask(name)
    await line.play()
    for name in ("a", "b", "c", "d"):
        await line.ask(name)
    await line.ask("quiet")
    assert (await line.play())[5:7] == ["a", "quiet"]


async def test_who_asks_now_and_then_begins_at_once():
    line = Line(Turns(at_once=20, client_at_once=20))
    await line.ask("quiet")
    await line.ask("greedy", times=10)
    await line.play()
    await line.ask("quiet")
    await line.ask("greedy", times=30)
    await line.has(12 + AT_ONCE_BESIDE_QUIET)
    assert len(line.got) == 12 + AT_ONCE_BESIDE_QUIET
    await line.ask("greedy", times=3)
    await line.ask("another")
    assert line.got[-1] == "greedy"
    line.turns.end("quiet")
    for _ in range(4):
        line.turns.end("greedy")
        await turned()
    await line.ask("quiet")
    assert line.got[-1] == "quiet"
    await line.ask("quiet", times=40)
    assert line.got.count("quiet") <= 2 + 20


async def test_clients_that_are_equals_are_all_under_way():
    line = Line(Turns(at_once=20))
    names = [f"client-{number}" for number in range(20)]
    for _ in range(3):
        for name in names:
            await line.ask(name)
        await line.play()
    for name in names:
        await line.ask(name)
    assert len(line.got) == 80


@pytest.mark.parametrize("client_at_once", [1, 8])
async def test_who_goes_away_while_it_waits_takes_no_turn_and_blocks_none(client_at_once: int):
    turns = Turns(at_once=1, client_at_once=client_at_once)
    line = Line(turns)
    await line.ask("a", times=3)
    line.asking[1].cancel()
    await turned()
    await line.ask("b")
    assert sorted(await line.play()) == ["a", "a", "b"]
    await turns.begin("c")
    turns.end("c")


async def test_who_goes_away_as_its_turn_comes_gives_it_on():
    turns = Turns(at_once=1)
    line = Line(turns)
    await line.ask("a")
    await line.ask("b")
    await line.ask("c")
    turns.end("a")
    line.asking[1].cancel()
    await turned()
    assert line.got == ["a", "c"]


async def test_a_turn_is_given_once():
    turns = Turns(at_once=1)
    turn = Turn(turns, "a")
    await turn.take(1.0)
    turn.give()
    turn.give()
    await turns.begin("b")
    waiting = asyncio.create_task(turns.begin("c"))
    await turned()
    assert not waiting.done()
    turns.end("b")
    await waiting


async def test_many_clients_that_came_once_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("perdure.gateway.turns.FORGET_AT", 10)
    turns = Turns()
    for number in range(100):
        await turns.begin(str(number))
        turns.end(str(number))
    assert len(turns._clients) <= 11


async def test_a_client_is_alone_until_another_sends_something():
    turns = Turns()
    turns.note("a")
    assert turns.alone("a")
    turns.note("b")
    turns.note("a")
    assert not turns.alone("a")
    assert not turns.alone("b")


def test_a_long_body_and_many_rows_cost_more():
    assert cost_of(b"", None) == 1.0
    assert cost_of(b"x" * 200_000, None) > 50


def test_a_rate_holds_on_the_average_and_allows_a_burst():
    now = [100.0]
    rates = Rates(10.0, lambda: now[0])
    for _ in range(20):
        rates.take("a")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("a")
    assert 0 < refused.value.retry_after <= 0.2
    rates.take("b")
    now[0] += 1.0
    for _ in range(10):
        rates.take("a")
    with pytest.raises(TooManyRequests):
        rates.take("a")


def test_full_buckets_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("perdure.gateway.rates.FORGET_AT", 10)
    now = [100.0]
    rates = Rates(10.0, lambda: now[0])
    for number in range(100):
        now[0] += 1.0
        rates.take(str(number))
    assert len(rates._empty_at) <= 10


async def test_a_client_over_its_rate_is_told_when_to_come_again_and_others_are_not():
    async with open_asker(client_rate=1) as asker:
        answers = [await asker.ask("GET", "/v1/queues") for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 429]
        assert answers[2].json["code"] == "too_many_requests"
        assert answers[2].headers["retry-after"] == "1"
        assert (await asker.ask("GET", "/v1/queues", client=("127.0.0.1", 1))).status == 200
        assert (await asker.ask("GET", "/healthz")).status == 200
        asker.clock.move(1_000_000)
        assert (await asker.ask("GET", "/v1/queues")).status == 200


async def test_a_long_list_beside_others_is_answered_as_one(asker: Asker):
    await asker.ask("GET", "/v1/queues", client=("127.0.0.1", 1))
    tasks = [{"kind": "k", "payload": number} for number in range(350)]
    tasks[320]["kind"] = ""
    answer = await asker.ask("POST", "/v1/tasks", tasks)
    assert answer.status == 207
    told = answer.json["tasks"]
    assert [place for place, each in enumerate(told) if each.get("problem")] == [320]
    assert len({each["id"] for each in told if each.get("id")}) == 349


async def test_a_piece_that_cannot_be_stored_is_told_for_its_items_only(asker: Asker, monkeypatch: pytest.MonkeyPatch):
    await asker.ask("GET", "/v1/queues", client=("127.0.0.1", 1))
    submit = asker.system.engine.submit
    calls = 0

    async def failing(requests, by):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        if calls == 2:
            raise errors.StoreBusy("busy")
        return await submit(requests, by)

    monkeypatch.setattr(asker.system.engine, "submit", failing)
    answer = await asker.ask("POST", "/v1/tasks", [{"kind": "k"}] * 250)
    codes = [(each.get("problem") or {}).get("code") for each in answer.json["tasks"]]
    assert codes == [None] * 100 + ["store_busy"] * 100 + [None] * 50


async def test_a_page_of_many_rows_leaves_room_for_others(asker: Asker):
    await asker.ask("POST", "/v1/tasks", [{"kind": "k"}] * 350)
    page = (await asker.ask("GET", "/v1/tasks", query={"limit": 1000})).json
    assert len(page["tasks"]) == 350
