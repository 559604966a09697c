"""Growing jobs beside other transactions: an added task counts each parent once, whoever ends or redrives it then."""

from collections.abc import Sequence
from typing import Any

import pytest

from backends.postgres.crew import Writer, job, settlings, task
from backends.postgres.racing import Beside, answer, run
from perdure.domain.attempt import Lease
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason
from perdure.errors import Conflict, LeaseLost
from perdure.store.job_ledger import Grown, Growth, Link
from perdure.store.ledger import Redrive
from perdure.store.postgres import growing, settling
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import redriving, sweeping

FAILED = Settlement.failed(Failure("ValueError", "boom"), Reason.PERMANENT, dead_letters=True)
GRACE_US = 1_000_000


def held(writer: Writer, graph: dict[str, Sequence[str]], count: int) -> dict[str, Lease]:
    """Leases of a new job's first tasks, by name."""
    writer.submit_jobs([job(writer.ids, graph)])
    return {str(lease.name): lease for lease in writer.claim(count)}


def grow(
    tx: Transaction, writer: Writer, lease: Lease, graph: dict[str, list[str]], before: Sequence[Link] = ()
) -> Any:
    made = tuple(
        task(writer.ids.new(), name=name, waits=len(above), request_hash=name) for name, above in graph.items()
    )
    links = tuple(Link(parent, child, "fail") for child, above in graph.items() for parent in above)
    (grown,) = growing.grow(tx, [Growth(lease.hold, made, (*links, *before))], writer.lanes)
    return grown


def states(writer: Writer) -> dict[str, tuple[str, int | None]]:
    rows = writer.session.connection.execute(
        "SELECT name, coalesce(live.state, ends.state), live.waits FROM perdure_tasks AS tasks"
        " LEFT JOIN perdure_live AS live USING (n) LEFT JOIN perdure_ends AS ends USING (n)"
    ).fetchall()
    return {name: (state, waits) for name, state, waits in rows}


@pytest.mark.parametrize(("ended", "state"), [(None, "queued"), (FAILED, "cancelled")])
def test_a_parent_that_ends_after_the_growth_is_counted(
    writers: list[Writer], beside: Beside, ended: Settlement | None, state: str
) -> None:
    leases = held(writers[0], {"split": [], "early": []}, 2)
    growth = writers[0].begin()
    assert isinstance(grow(growth, writers[0], leases["split"], {"page": ["early"]}), Grown)
    given = settlings([leases["early"]], ended) if ended else settlings([leases["early"]])
    settled = beside.held_up(writers[1], lambda tx: settling.settle(tx, given))
    writers[0].commit(growth)
    answer(settled)
    assert states(writers[0])["page"][0] == state


def test_a_parent_that_ends_before_the_growth_is_counted(writers: list[Writer], beside: Beside) -> None:
    leases = held(writers[0], {"split": [], "early": []}, 2)
    settle = writers[0].begin()
    settling.settle(settle, settlings([leases["early"]]))
    grown = beside.held_up(writers[1], lambda tx: grow(tx, writers[1], leases["split"], {"page": ["early"]}))
    writers[0].commit(settle)
    assert isinstance(answer(grown), Grown)
    assert states(writers[0])["page"] == ("queued", 0)


def test_a_cascade_beside_reaches_the_added_task_once(writers: list[Writer], beside: Beside) -> None:
    leases = held(writers[0], {"split": [], "early": [], "late": ["early"], "last": ["late"]}, 2)
    run(writers[0], lambda tx: settling.settle(tx, settlings([leases["early"]], FAILED)))
    growth = writers[0].begin()
    grow(growth, writers[0], leases["split"], {"page": ["late"]})
    # The cascade leaves what another transaction looks at to its next run.
    run(writers[1], lambda tx: sweeping.cascade(tx, 100, GRACE_US))
    writers[0].commit(growth)
    run(writers[1], lambda tx: sweeping.cascade(tx, 100, GRACE_US))
    assert states(writers[0])["page"][0] == "cancelled"


def test_a_growth_waits_for_a_cascade_that_deals_with_its_parent(writers: list[Writer], beside: Beside) -> None:
    leases = held(writers[0], {"split": [], "early": [], "late": ["early"], "last": ["late"]}, 2)
    run(writers[0], lambda tx: settling.settle(tx, settlings([leases["early"]], FAILED)))
    cascade = writers[0].begin()
    sweeping.cascade(cascade, 100, GRACE_US)
    grown = beside.held_up(writers[1], lambda tx: grow(tx, writers[1], leases["split"], {"page": ["late"]}))
    writers[0].commit(cascade)
    assert isinstance(answer(grown), Grown)
    assert states(writers[0])["page"][0] == "cancelled"


def test_what_ends_with_its_parent_while_it_gets_its_first_child_tells_it(
    writers: list[Writer], beside: Beside
) -> None:
    leases = held(writers[0], {"split": [], "early": [], "late": ["early"]}, 2)
    growth = writers[0].begin()
    grow(growth, writers[0], leases["split"], {"page": ["late"]})
    settled = beside.held_up(writers[1], lambda tx: settling.settle(tx, settlings([leases["early"]], FAILED)))
    writers[0].commit(growth)
    answer(settled)
    assert states(writers[0])["late"] == ("cancelled", None)
    run(writers[1], lambda tx: sweeping.cascade(tx, 100, GRACE_US))
    assert states(writers[0])["page"] == ("cancelled", None)


@pytest.mark.parametrize("first", ["growth", "redrive"])
def test_a_parent_that_is_redriven_meanwhile_is_waited_for_or_has_cancelled(
    writers: list[Writer], beside: Beside, first: str
) -> None:
    leases = held(writers[0], {"split": [], "early": []}, 2)
    run(writers[0], lambda tx: settling.settle(tx, settlings([leases["early"]], FAILED)))
    again = [Redrive("default", leases["early"].hold.task_id, "bob")]
    graph = {"page": ["early", "split"]}
    if first == "growth":
        opened = writers[0].begin()
        grow(opened, writers[0], leases["split"], graph)
        second = beside.held_up(writers[1], lambda tx: redriving.redrive(tx, again))
    else:
        opened = writers[0].begin()
        redriving.redrive(opened, again)
        second = beside.held_up(writers[1], lambda tx: grow(tx, writers[1], leases["split"], graph))
    writers[0].commit(opened)
    answer(second)
    # Cancelled for the failure and revived by the redrive, or never cancelled: it waits for both.
    assert states(writers[0])["page"] == ("pending", 2)
    assert states(writers[0])["early"] == ("queued", 0)


def test_of_two_growths_of_one_name_at_once_one_is_refused(writers: list[Writer], beside: Beside) -> None:
    leases = held(writers[0], {"split": [], "cut": []}, 2)
    growth = writers[0].begin()
    assert grow(growth, writers[0], leases["split"], {"page": [], "one": []}).added == 2

    def same_name(tx: Transaction) -> Any:
        return grow(tx, writers[1], leases["cut"], {"page": [], "two": ["page"]})

    grown = beside.held_up(writers[1], same_name)
    writers[0].commit(growth)
    # The same request: the task is there, and the new one waits for it.
    assert answer(grown).added == 1
    assert states(writers[0])["two"] == ("pending", 1)
    other = run(writers[1], lambda tx: grow(tx, writers[1], leases["cut"], {"split": []}))
    assert isinstance(other, Conflict)


def test_what_shall_wait_is_not_let_go_meanwhile(writers: list[Writer], beside: Beside) -> None:
    leases = held(writers[0], {"split": [], "early": [], "join": ["split", "early"]}, 2)
    growth = writers[0].begin()
    grow(growth, writers[0], leases["split"], {"page": []}, [Link("page", "join", "fail")])
    settled = beside.held_up(writers[1], lambda tx: settling.settle(tx, settlings([leases["early"]])))
    writers[0].commit(growth)
    answer(settled)
    assert states(writers[0])["join"] == ("pending", 2)
    run(writers[0], lambda tx: settling.settle(tx, settlings([leases["split"]])))
    assert states(writers[0])["join"] == ("pending", 1)


def test_an_attempt_that_is_ended_meanwhile_adds_nothing(writers: list[Writer], beside: Beside) -> None:
    leases = held(writers[0], {"split": []}, 1)
    settle = writers[0].begin()
    settling.settle(settle, settlings([leases["split"]]))
    grown = beside.held_up(writers[1], lambda tx: grow(tx, writers[1], leases["split"], {"page": []}))
    writers[0].commit(settle)
    assert isinstance(answer(grown), LeaseLost)
    assert states(writers[0]) == {"split": ("succeeded", None)}
