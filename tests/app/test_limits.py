"""Limits of a kind, as a program says them: they hold over workers, and a task tells why it waits."""

import asyncio
from pathlib import Path

import pytest

import perdure


async def test_no_more_run_at_once_for_a_customer_than_the_kind_says(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "limits.db"))
    running: dict[str, int] = {}
    most: dict[str, int] = {}

    @app.task("send", limits=[perdure.Limit(concurrency=2, by="customer")])
    async def send(customer: str, number: int) -> int:
        running[customer] = running.get(customer, 0) + 1
        most[customer] = max(most.get(customer, 0), running[customer])
        await asyncio.sleep(0)
        running[customer] -= 1
        return number

    async with app, app.worker(concurrency=16):
        calls = [send.call(customer, number) for number in range(20) for customer in ("acme", "other")]
        handles = await app.submit_many(calls)
        await perdure.wait_all(handles, timeout=60)
        assert sorted([await handle.result() for handle in handles]) == sorted([*range(20)] * 2)
    assert all(count <= 2 for count in most.values())


async def test_a_task_at_its_limit_says_so(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "limits.db"))

    @app.task("book", limits=[perdure.Limit(ordered=True, by="account")])
    async def book(account: str) -> None: ...

    async with app:
        first = await app.submit(book, account="a")
        second = await app.submit(book, account="a")
        told = await second.why()
    assert [(each.sort, each.by) for each in told if each.sort == "limit"] == [("limit", (first.id,))]


def test_the_same_limit_twice_is_refused_where_it_is_written() -> None:
    app = perdure.App(":memory:")
    with pytest.raises(perdure.Misuse, match="twice"):

        @app.task("x", limits=[perdure.Limit(concurrency=1), perdure.Limit(concurrency=2)])
        async def handler() -> None: ...


async def test_a_customer_who_floods_lets_another_one_through(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "limits.db"))
    order: list[str] = []

    @app.task("make", fair_by="customer")
    async def make(customer: str, number: int) -> None:
        order.append(customer)

    async with app:
        handles = await app.submit_many([make.call("flooding", number) for number in range(30)])
        handles.append(await app.submit(make, "single", 1))
        async with app.worker(concurrency=1, prefetch=0):
            await perdure.wait_all(handles, timeout=60)
    assert order.index("single") <= 1
    assert len(order) == 31


@pytest.mark.parametrize("fields", [3, ("a", "a"), ("",), [1]])
def test_turns_by_what_is_no_field_are_refused_where_they_are_written(fields: object) -> None:
    app = perdure.App(":memory:")
    with pytest.raises(perdure.Misuse, match="fair_by"):
        app.task("x", fair_by=fields)  # type: ignore[call-overload]


async def test_gates_and_pauses_are_told(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "limits.db"))

    @app.task("send", limits=[perdure.Limit(concurrency=1, by="customer")])
    async def send(customer: str) -> None: ...

    async with app:
        first, second, other = [await app.submit(send, customer) for customer in ("acme", "acme", "other")]
        page = await app.flow.gates("send", limit=1)
        (gate,) = page.rows
        assert ([each.task for each in gate.holders], [each.task for each in gate.next]) == ([first.id], [second.id])
        (gate,) = (await app.flow.gates("send", limit=1, cursor=page.cursor)).rows
        assert [each.task for each in gate.holders] == [other.id]
        (gate,) = (await app.flow.gates("send", key="other")).rows
        assert (gate.key, gate.taken, gate.waiting) == ('"other"', 1, 0)
        assert [each.key for each in (await app.flow.gates("send", waiting=True)).rows] == ['"acme"']
        with pytest.raises(perdure.NotFound):
            await app.flow.gates("nobody")
        await app.flow.pause_queue("mail")
        (told,) = await app.flow.pauses()
        assert (told.type, told.name, told.state, told.actor) == ("queue", "mail", "paused", app.principal.name)


@pytest.mark.parametrize(
    ("by", "payload", "said"),
    [
        ("customer", {"customer": 7}, "7"),
        ("customer", {"customer": "7"}, "7"),
        ("customer", {}, "null"),
        ("customer", {"customer": "x" * 5_000}, "x" * 5_000),
        (("customer", "region"), {"customer": "a", "region": 1}, '[ "a", 1 ]'),
        ("customer", {"customer": "Zo\u00eb \U0001f600"}, "Zo\u00eb \U0001f600"),
    ],
)
def test_a_key_may_be_said_plainly(
    tmp_path: Path, by: str | tuple[str, ...], payload: dict[str, object], said: str
) -> None:
    app = perdure.App(str(tmp_path / "limits.db"))

    @app.task("send", limits=[perdure.Limit(concurrency=1, by=by)])
    def send(customer: object = None, region: object = None) -> None: ...

    with app.sync as sync:
        sync.submit(send, **payload)
        sync.submit(send, customer="another", region="another")
        (gate,) = sync.flow.gates("send", key=said).rows
        assert gate.taken == 1
        assert [each.key for each in sync.flow.gates("send", key=gate.key).rows] == [gate.key]
        sync.flow.pause_kind("send")
        assert [each.type for each in sync.flow.pauses()] == ["kind"]
