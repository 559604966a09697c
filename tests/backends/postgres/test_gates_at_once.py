"""Gates at once: a slot that is given back and a task that begins to wait for one never miss each other."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from backends.postgres.crew import Writer, settlings
from backends.postgres.racing import Beside, answer, crew
from conformance import postgres_rows
from perdure.domain.gate import Gate, GateSort
from perdure.domain.states import TaskState
from perdure.store.postgres import settling, submission
from perdure.store.postgres.connecting import ISOLATIONS, READ_COMMITTED
from perdure.store.postgres.transaction import Transaction


@pytest.fixture(params=ISOLATIONS)
def writers(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[list[Writer]]:
    """Sessions of one database."""
    with crew(postgres_database, request.param) as made:
        yield made


@pytest.fixture
def beside(postgres_database: str) -> Iterator[Beside]:
    """Threads beside."""
    made = Beside(postgres_database)
    yield made
    made.close()


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


@pytest.mark.parametrize("writers", [READ_COMMITTED], indirect=True)
def test_the_end_of_tasks_for_whose_slots_nobody_waits_is_one_statement(writers: list[Writer]) -> None:
    writer = writers[0]
    writer.submit([each for key in "abc" for each in writer.tasks(1, options=by_key(key, "all", slots=5))])
    leases = writer.claim(3)
    with writer.transaction() as tx:
        asked = Asked(tx)
        settling.settle(asked, settlings(leases))  # type: ignore[arg-type]
    assert asked.names == ["settle_end"]


class Asked:
    """A transaction that remembers which statements it was asked for."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.names: list[str] = []

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        """Run it and remember its name."""
        self.names.append(name)
        return self._tx.run(name, **bindings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)
