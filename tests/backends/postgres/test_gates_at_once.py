"""Gates at once: a slot that is given back and a task that begins to wait for one never miss each other."""

import msgspec
import pytest

from backends.postgres.crew import Watched, Writer, job, settlings, with_options
from backends.postgres.racing import Beside, answer
from conformance import postgres_rows
from perdure.domain import limits
from perdure.domain.gate import Gate, GateSort
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Task
from perdure.store.ledger import Cancellation
from perdure.store.postgres import settling, submission
from perdure.store.postgres.connecting import READ_COMMITTED
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import cancelling


def by_key(*keys: str, slots: int = 1) -> str:
    """The options of a task with a limit of these keys."""
    gates = [Gate(GateSort.CONCURRENCY, f"work by {place}", key, slots) for place, key in enumerate(keys)]
    return msgspec.json.encode({"gates": gates}).decode()


def submitted(tx: Transaction, writer: Writer, options: str) -> TaskState | None:
    """The state in which a new task begins."""
    (found,) = submission.submit(tx, writer.tasks(1, options=options), writer.lanes)
    state: TaskState | None = found.state
    return state


def waited(writer: Writer) -> list[bool]:
    """What each gate says of whether tasks may wait there."""
    with writer.transaction() as tx:
        return [each for (each,) in tx.connection.execute("SELECT waited FROM perdure_gates ORDER BY gate")]


def test_what_comes_while_a_slot_is_given_back_has_it(
    writers: list[Writer], beside: Beside, postgres_database: str
) -> None:
    first, second, *_ = writers
    first.submit(first.tasks(1, options=by_key("a")))
    leases = first.claim(1)
    tx = first.begin()
    settling.settle(tx, settlings(leases))
    coming = beside.held_up(second, lambda tx: submitted(tx, second, by_key("a")))
    first.commit(tx)
    assert answer(coming) is TaskState.QUEUED
    assert not postgres_rows.contradictions(postgres_database)


@pytest.mark.parametrize("keys", [("a",), ("a", "b")], ids=["the last of its gates", "one of its gates"])
def test_what_begins_to_wait_while_a_slot_is_given_back_has_it(
    writers: list[Writer], beside: Beside, postgres_database: str, keys: tuple[str, ...]
) -> None:
    first, second, *_ = writers
    first.submit(first.tasks(1, options=by_key("a")))
    leases = first.claim(1)
    assert waited(first) == [False]
    tx = second.begin()
    assert submitted(tx, second, by_key(*keys)) is TaskState.PENDING
    ending = beside.held_up(first, lambda tx: settling.settle(tx, settlings(leases)))
    second.commit(tx)
    answer(ending)
    assert len(first.claim(1)) == 1, "it is its turn"
    assert not postgres_rows.contradictions(postgres_database)


def test_who_waits_no_more_is_asked_for_no_more(writers: list[Writer], postgres_database: str) -> None:
    writer = writers[0]
    writer.submit(writer.tasks(3, options=by_key("a")))
    assert waited(writer) == [True]
    for _ in range(3):
        writer.settle(settlings(writer.claim(1)))
    assert waited(writer) == [False]
    assert not postgres_rows.contradictions(postgres_database)


def ending(writer: Writer, *tasks: Task, come_back: bool = False) -> None:
    """All of these end together while one more waits for a slot of the last of them, and then it has it.

    `come_back`: one task without limits comes back to its lane in the same settle.
    """
    last = tasks[-1].rare.options
    writer.submit([each for each in tasks if each.rare.job is None])
    leases = writer.claim(10)
    assert len(leases) == len(tasks)
    writer.submit(writer.tasks(1, options=last))
    ends = settlings(leases)
    if come_back:
        writer.submit(writer.tasks(1))
        ends += settlings(writer.claim(1), Settlement.snoozed(10**9))
    writer.settle(ends)
    assert len(writer.claim(10)) == 1, "it is the turn of the one that waits"


def test_who_ends_among_tasks_without_limits_lets_the_next_one_in(
    writers: list[Writer], postgres_database: str
) -> None:
    ending(writers[0], *writers[0].tasks(2), *writers[0].tasks(1, options=by_key("a")))
    assert not postgres_rows.contradictions(postgres_database)


def test_who_ends_beside_one_that_comes_back_lets_the_next_one_in(
    writers: list[Writer], postgres_database: str
) -> None:
    ending(writers[0], *writers[0].tasks(1, options=by_key("a")), come_back=True)
    assert not postgres_rows.contradictions(postgres_database)


def test_who_ends_in_a_job_lets_the_next_one_in(writers: list[Writer], postgres_database: str) -> None:
    writer = writers[0]
    built = job(writer.ids, {"only": []})
    inside = with_options(built.tasks[0], by_key("a"))
    writer.submit_jobs([built._replace(tasks=(inside,))])
    ending(writer, *writer.tasks(1), inside)
    assert not postgres_rows.contradictions(postgres_database)


@pytest.mark.parametrize("writers", [READ_COMMITTED], indirect=True)
def test_who_opens_a_gate_waits_for_nobody_at_another(writers: list[Writer], postgres_database: str) -> None:
    first, second, *_ = writers
    first.submit(first.tasks(2, options=by_key("a")) + first.tasks(1, options=by_key("b")))
    leases = first.claim(2)
    tx = second.begin()
    assert submitted(tx, second, by_key("b")) is TaskState.PENDING
    gates = [lease for lease in leases if '"a"' in (lease.options or "")]
    with first.transaction() as opening:
        opening.connection.execute("SET LOCAL lock_timeout = '1s'")
        settling.settle(opening, settlings(gates))
    second.commit(tx)
    assert waited(first) == [False, True]
    assert not postgres_rows.contradictions(postgres_database)


@pytest.mark.parametrize("writers", [READ_COMMITTED], indirect=True)
def test_the_end_of_tasks_for_whose_slots_nobody_waits_is_one_statement(writers: list[Writer]) -> None:
    writer = writers[0]
    writer.submit([each for key in "abc" for each in writer.tasks(1, options=by_key(key, "all", slots=5))])
    leases = writer.claim(3)
    asked = Watched(writer.session.connection, writer.session.begin(durable=False))
    settling.settle(asked, settlings(leases))
    writer.commit(asked)
    assert [*asked.given] == ["settle_end"]


def test_what_one_gate_says_is_nothing_to_another(writers: list[Writer], postgres_database: str) -> None:
    writer = writers[0]
    writer.submit(writer.tasks(1, options=by_key("a")) + writer.tasks(1, options=by_key("b")))
    leases = writer.claim(2)
    gone, stays = writer.tasks(1, options=by_key("b")), writer.tasks(1, options=by_key("a"))
    writer.submit(gone)
    assert waited(writer) == [False, True]
    with writer.transaction() as tx:
        grace = limits.CANCEL_GRACE_DEFAULT_US
        cancelling.cancel(tx, [Cancellation("default", gone[0].id, "bob", Reason.USER, None, None, grace)])
    writer.submit(stays)
    assert waited(writer) == [True, True], "it may say so where nobody waits any more"
    writer.settle(settlings([lease for lease in leases if '"a"' in (lease.options or "")]))
    assert waited(writer) == [False, True], "what is said of a gate is changed by who keeps it from others"
    assert not postgres_rows.contradictions(postgres_database)
