"""In what order claims take from many lanes, and what becomes of counters that are only appended to."""

import random
from collections.abc import Iterator

import pytest

from backends.postgres.crew import Writer, settlings
from perdure.domain.settlement import Settlement
from perdure.store.postgres import folding
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.folding import Folds
from perdure.store.postgres.heads import LANES_MAX

ORDER = """
    SELECT tasks.id FROM perdure_live AS live JOIN perdure_tasks AS tasks USING (n)
    JOIN perdure_lanes AS lanes ON lanes.lane = live.lane
    WHERE live.state = 'queued' ORDER BY lanes.priority DESC, live.seq
"""
KINDS = tuple(f"kind-{number}" for number in range(6))


class StoppedClock:
    """Time stands."""

    def monotonic_us(self) -> int:
        return 0


@pytest.fixture
def writer(postgres_database: str) -> Iterator[Writer]:
    """A session, and a worker `w` for six kinds."""
    made = Writer(postgres_database)
    made.register(kinds=KINDS)
    yield made
    made.close()


def queued(writer: Writer) -> list[str]:
    """What is queued, most urgent first."""
    with writer.transaction() as tx:
        return [id for (id,) in tx.connection.execute(ORDER).fetchall()]


@pytest.mark.parametrize("seed", range(6))
def test_claims_take_what_is_most_urgent_and_oldest_of_all_lanes(writer: Writer, seed: int) -> None:
    chance = random.Random(seed)
    priorities = chance.sample(range(10), 3)
    kinds = KINDS[: chance.randint(1, 6)]
    for _ in range(12):
        size = chance.choice((1, 3, 40))
        kind, priority = chance.choice(kinds), chance.choice(priorities)
        writer.submit(writer.tasks(size, kind=kind, priority=priority))
    writer.settle(settlings(chance.sample(writer.claim(30), 10), Settlement.handed_back()))
    while expected := queued(writer):
        want = chance.choice((1, 5, 50))
        assert [lease.hold.task_id for lease in writer.claim(want)] == expected[:want]


class TickingClock:
    """Each look at it takes `step` microseconds."""

    def __init__(self) -> None:
        self.now_us = 0
        self.step = 0

    def monotonic_us(self) -> int:
        self.now_us += self.step
        return self.now_us


def test_of_many_lanes_an_idle_one_is_passed_over_for_a_moment_and_only_while_others_have_enough(
    writer: Writer,
) -> None:
    kinds = [f"kind-{number}" for number in range(LANES_MAX + 10)]
    writer.register(kinds=kinds)
    writer.submit([task for kind in kinds for task in writer.tasks(1, kind=kind)])
    writer.submit(writer.tasks(1, kind="kind-71", priority=9))
    assert len(writer.claim(1_000)) == len(kinds) + 1
    clock = TickingClock()
    writer.claims = Claims(clock)  # type: ignore[arg-type]
    writer.submit(writer.tasks(5, kind="kind-1") + writer.tasks(5, kind="kind-2"))
    clock.step = 1_000
    assert writer.claim(1)[0].kind == "kind-1"
    clock.step = 0
    writer.submit(writer.tasks(1, kind="kind-70"))
    writer.submit(writer.tasks(1, kind="kind-71", priority=9))
    assert writer.claim(1)[0].kind == "kind-1"
    clock.now_us += 1_000_000
    assert writer.claim(1)[0].kind == "kind-71"
    clock.step = 1_000
    assert {lease.kind for lease in writer.claim(100)} == {"kind-1", "kind-2", "kind-70"}


def counts(writer: Writer) -> tuple[dict[str, int], int]:
    """The counters of all lanes together, and how many changes are not folded."""
    with writer.transaction() as tx:
        folded = tx.connection.execute("SELECT state, sum(count)::bigint FROM perdure_counts GROUP BY state").fetchall()
        changes = tx.connection.execute(
            "SELECT state, sum(change)::bigint, count(*) FROM perdure_count_changes GROUP BY state"
        ).fetchall()
    total = dict(folded)
    for state, change, _ in changes:
        total[state] = total.get(state, 0) + change
    return {state: count for state, count in total.items() if count}, sum(rows for _, _, rows in changes)


def test_folding_changes_no_count(writer: Writer) -> None:
    for _ in range(5):
        writer.submit(writer.tasks(4, kind="kind-0"))
    leases = writer.claim(10)
    writer.settle(settlings(leases[:6]))
    before, unfolded = counts(writer)
    assert before == {"queued": 10, "leased": 4, "succeeded": 6, "attempts": 6}
    folds = Folds(StoppedClock())  # type: ignore[arg-type]
    with writer.transaction() as tx:
        assert folds.fold(tx) == unfolded
    assert counts(writer) == (before, 0)


def test_of_two_folds_at_once_the_second_leaves_it_to_the_first(writer: Writer, postgres_database: str) -> None:
    writer.submit(writer.tasks(4, kind="kind-0"))
    other = Writer(postgres_database)
    first = writer.begin()
    with writer.session.connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM perdure_meta WHERE key = 'counts_fold'")
        assert cursor.fetchone() == (1,)
    assert Folds(StoppedClock()).fold(first) > 0  # type: ignore[arg-type]
    with other.transaction() as tx:
        assert Folds(StoppedClock()).fold(tx) == 0  # type: ignore[arg-type]
    writer.commit(first)
    other.close()
    assert counts(writer) == ({"queued": 4}, 0)


@pytest.mark.parametrize("awaited", [False, True])
def test_while_a_fold_takes_all_it_may_the_next_chance_is_taken(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, awaited: bool
) -> None:
    monkeypatch.setattr(folding, "FOLD_MAX_CHANGES", 2)
    for _ in range(5):
        writer.submit(writer.tasks(1, kind="kind-0"))
    folds = Folds(StoppedClock())  # type: ignore[arg-type]
    folds._next_us = -folding.FOLD_AWAITED_US
    left = []
    for _ in range(4):
        with writer.transaction() as tx:
            folds.fold_if_time(tx, awaited=awaited)
        left.append(counts(writer)[1])
    writer.submit(writer.tasks(1, kind="kind-0"))
    with writer.transaction() as tx:
        folds.fold_if_time(tx)
    assert (left, counts(writer)) == ([3, 1, 0, 0], ({"queued": 6}, 1))
