"""Many sessions settle attempts of one kind at the same moment: its breaker turns once, and no outcome is lost."""

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from backends.postgres.crew import DONE, Writer, settlings
from backends.postgres.racing import Beside, answer, crew, run
from perdure.domain.attempt import Lease
from perdure.domain.breaker import BreakerEvent, BreakerTurn
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Settlement
from perdure.store.ledger import Settled
from perdure.store.postgres import settling
from perdure.store.postgres.connecting import READ_COMMITTED, SERIALIZABLE
from perdure.store.relational.definitions import PUT, Put

SESSIONS = 8
FAILURES = 20
BAD = Settlement.retry(Failure("ConnectionError", "away", ""), 0)


def declare(writer: Writer, **said: Any) -> None:
    """Give the usual kind a breaker."""
    breaker = {"share": None, "failures": FAILURES, "open_for": 3600, "probes": SESSIONS, **said}
    document = json.dumps({"kind": "work", "breaker": breaker})
    run(writer, lambda tx: PUT.apply(tx, [Put("default", "kind", "work", document, "bob", None)]))


def leased(writer: Writer, count: int) -> list[Lease]:
    """Attempts under way."""
    writer.submit(writer.tasks(count, max_attempts=100))
    leases = claimed(writer)
    assert len(leases) == count
    return leases


def claimed(writer: Writer, count: int = 100) -> list[Lease]:
    """A claim of what may begin."""
    return run(writer, lambda tx: writer.claim_in(tx, count))


def settle_at_once(
    beside: Beside, writers: Sequence[Writer], leases: Sequence[Lease], settlement: Settlement
) -> list[Settled]:
    """Settle attempts one by one, by all sessions at the same moment each time."""
    together = threading.Barrier(len(writers))

    def settle_own(number: int) -> list[Settled]:
        answers = []
        for lease in leases[number :: len(writers)]:
            together.wait(20)
            answers += run(writers[number], lambda tx, lease=lease: settling.settle(tx, settlings([lease], settlement)))
        return answers

    futures = [beside.pool.submit(settle_own, number) for number in range(len(writers))]
    return [each for future in futures for each in answer(future)]


def turns(answers: Sequence[Settled]) -> list[BreakerTurn]:
    """How the breaker was turned."""
    assert all(each.state is not None for each in answers)
    return [each.turned for each in answers if each.turned is not None]


def stored(writer: Writer, query: str) -> tuple[Any, ...]:
    """The one row of a query."""
    with writer.transaction() as tx:
        (row,) = tx.connection.execute(query).fetchall()  # type: ignore[call-overload]
    return tuple(row)


def let_probes_through(writer: Writer) -> None:
    """Let the time pass for which the breaker is open."""
    with writer.transaction() as tx:
        tx.connection.execute("UPDATE perdure_breakers SET since_us = trips, until_us = trips, tell_us = NULL")


@pytest.mark.parametrize("isolation", [READ_COMMITTED, SERIALIZABLE])
def test_eight_sessions_whose_attempts_fail_open_it_once(postgres_database: str, isolation: str) -> None:
    beside = Beside(postgres_database)
    with crew(postgres_database, isolation, SESSIONS) as writers:
        declare(writers[0])
        (turn,) = turns(settle_at_once(beside, writers, leased(writers[0], 5 * SESSIONS), BAD))
        assert turn.event is BreakerEvent.TOO_MANY_FAILED
        # What others count at that moment is not seen yet: it opens one settlement of each late at most.
        assert FAILURES <= turn.counted.failures < FAILURES + SESSIONS
        trips, counted = stored(writers[0], "SELECT trips, failures FROM perdure_breakers")
        assert (trips, counted) == (1, turn.counted.failures)
        # All that ended before it opened is counted, and what was committed beside it.
        (outcomes,) = stored(writers[0], "SELECT sum(attempts) FROM perdure_outcomes")
        assert turn.counted.attempts <= outcomes < turn.counted.attempts + SESSIONS
        assert claimed(writers[0]) == []
    beside.close()


@pytest.mark.parametrize("isolation", [READ_COMMITTED, SERIALIZABLE])
def test_no_outcome_of_a_breaker_that_stays_closed_is_lost(postgres_database: str, isolation: str) -> None:
    beside = Beside(postgres_database)
    with crew(postgres_database, isolation, SESSIONS) as writers:
        declare(writers[0], failures=1_000)
        assert turns(settle_at_once(beside, writers, leased(writers[0], 10 * SESSIONS), BAD)) == []
        assert stored(writers[0], "SELECT sum(attempts), sum(failures) FROM perdure_outcomes") == (80, 80)
    beside.close()


@pytest.mark.parametrize("isolation", [READ_COMMITTED, SERIALIZABLE])
def test_probes_that_fail_at_one_moment_open_it_again_once(postgres_database: str, isolation: str) -> None:
    beside = Beside(postgres_database)
    with crew(postgres_database, isolation, SESSIONS) as writers:
        declare(writers[0], failures=1)
        leases = leased(writers[0], 1)
        writers[0].submit(writers[0].tasks(20, max_attempts=100))
        assert len(turns(writers[0].settle(settlings(leases, BAD)))) == 1
        for trips in range(2, 6):
            let_probes_through(writers[0])
            with writers[0].transaction() as tx:
                tx.connection.execute("DELETE FROM perdure_slots")
            probes = claimed(writers[0])
            assert len(probes) == SESSIONS
            (turn,) = turns(settle_at_once(beside, writers, probes, BAD))
            assert turn.event is BreakerEvent.PROBE_FAILED
            assert stored(writers[0], "SELECT trips FROM perdure_breakers") == (trips,)
    beside.close()


@pytest.mark.parametrize("isolation", [READ_COMMITTED, SERIALIZABLE])
def test_probes_that_succeed_at_one_moment_close_it(postgres_database: str, isolation: str) -> None:
    beside = Beside(postgres_database)
    with crew(postgres_database, isolation, SESSIONS) as writers:
        declare(writers[0], failures=1)
        writers[0].submit(writers[0].tasks(100, max_attempts=100))
        for _ in range(5):
            (first,) = claimed(writers[0], 1)
            assert len(turns(writers[0].settle(settlings([first], BAD)))) == 1
            let_probes_through(writers[0])
            with writers[0].transaction() as tx:
                tx.connection.execute("DELETE FROM perdure_slots")
            probes = claimed(writers[0])
            assert len(probes) == SESSIONS
            (turn,) = turns(settle_at_once(beside, writers, probes, DONE))
            assert (turn.event, turn.counted) == (BreakerEvent.PROBES_PASSED, (SESSIONS, 0))
    beside.close()
