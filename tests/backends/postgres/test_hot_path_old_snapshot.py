"""Somebody reads for hours, and nothing that has died can be cleaned away: claims stay as light as they were."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import Watched, Writer, nodes, settlings
from perdure.domain.limits import SECOND_US
from perdure.domain.settlement import Settlement
from perdure.store.ledger import ClaimRequest
from perdure.store.postgres import submission
from perdure.store.postgres.claiming import Claims

CHURN = 30_000
STEP = 1_000
CLAIM = 100
FINDING = {"perdure_live_ready"}


class StoppedClock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now_us = 0

    def monotonic_us(self) -> int:
        return self.now_us


@pytest.fixture
def writer(postgres_database: str) -> Iterator[Writer]:
    """A session, a worker `w`, and claims that look below their marks only when the clock is moved."""
    made = Writer(postgres_database)
    made.clock = StoppedClock()  # type: ignore[attr-defined]
    made.claims = Claims(made.clock)  # type: ignore[attr-defined,arg-type]
    made.register()
    yield made
    made.close()


@pytest.fixture
def reader(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    """A snapshot that is held from now on."""
    with psycopg.connect(postgres_database) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM perdure_live")
        yield connection


def pages_of_a_claim(writer: Writer, claims: Claims) -> int:
    """How many pages a claim of `CLAIM` tasks looks at to find them. It is undone."""
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    leases = claims.claim(tx, [ClaimRequest("w", writer.leases(CLAIM))], writer.lanes)[0]
    assert len(leases) == CLAIM
    given = tx.given
    writer.session.roll_back()
    again = Watched(writer.session.connection, writer.session.begin(durable=False))
    again.given = given
    found = [node for node in nodes(again.plan("claim", analyze=True)) if node.get("Index Name") in FINDING]
    writer.session.roll_back()
    assert {node["Index Name"] for node in found} == FINDING
    return sum(int(node["Shared Hit Blocks"]) + int(node["Shared Read Blocks"]) for node in found)


def churn(writer: Writer) -> None:
    """Submit, claim and settle many tasks."""
    for _ in range(0, CHURN, STEP):
        writer.submit(writer.tasks(STEP))
        leases = writer.claim(STEP)
        assert len(leases) == STEP
        writer.settle(settlings(leases))


def test_a_claim_stays_level_while_a_snapshot_is_held(writer: Writer, reader: psycopg.Connection[Any]) -> None:
    writer.submit(writer.tasks(CLAIM))
    fresh = pages_of_a_claim(writer, writer.claims)
    churn(writer)
    writer.submit(writer.tasks(STEP))
    writer.settle(settlings(writer.claim(STEP)))
    after = pages_of_a_claim(writer, writer.claims)
    without_marks = pages_of_a_claim(writer, Claims(StoppedClock()))  # type: ignore[arg-type]
    assert after < 2 * fresh + 20, (fresh, after, without_marks)
    assert without_marks > 5 * after, (
        f"{fresh}, {after}, {without_marks}: the dead do not show: this test shows nothing"
    )


def test_what_commits_late_below_the_marks_is_found(
    writer: Writer, reader: psycopg.Connection[Any], postgres_database: str
) -> None:
    other = Writer(postgres_database)
    writer.submit(writer.tasks(1))
    late = other.begin()
    (task,) = other.tasks(1)
    submission.submit(late, [task], other.lanes)
    for _ in range(5):
        writer.submit(writer.tasks(STEP))
        writer.settle(settlings(writer.claim(STEP)))
    other.commit(late)
    other.close()
    found = [lease.hold.task_id for lease in writer.claim(STEP)]
    assert task.id not in found, "it was not below the marks"
    writer.clock.now_us += SECOND_US  # type: ignore[attr-defined]
    assert [lease.hold.task_id for lease in writer.claim(1)] == [task.id]


def test_what_came_back_in_front_is_found_at_once(writer: Writer) -> None:
    writer.submit(writer.tasks(20))
    first = writer.claim(5)
    writer.settle(settlings(first[2:4], Settlement.handed_back()))
    assert [lease.hold.task_id for lease in writer.claim(3)][:2] == [lease.hold.task_id for lease in first[2:4]]
