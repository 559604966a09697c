"""What a caller's own transaction submits is announced once that has ended, by whoever is still there to ask."""

import psycopg

from backends.postgres.crew import ids, task
from backends.postgres.opened import opened
from perdure.store.postgres.watching import LOOK_FIRST_US, LOOK_LAST_US, OPEN_MAX, Watches
from perdure.store.wakeups import Topic

LONG = 60.0
SECOND_US = 1_000_000


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_us = 0

    def __call__(self) -> int:
        return self.now_us


def test_a_transaction_is_looked_at_the_more_rarely_the_longer_it_is_open() -> None:
    clock = Hands()
    watches = Watches(clock)
    watches.add(7)
    looks = []
    while clock.now_us < 60 * SECOND_US:
        assert watches.due_us is not None
        waited_us, clock.now_us = watches.due_us - clock.now_us, watches.due_us
        looks.append(waited_us)
        assert watches.due(clock.now_us) == [7]
        assert not watches.looked([7], [])
    assert (looks[0], looks[-1]) == (LOOK_FIRST_US, LOOK_LAST_US)
    assert looks == sorted(looks)
    assert len(looks) < 200


def test_what_has_ended_is_told_once_and_forgotten() -> None:
    watches = Watches(Hands())
    watches.add(7)
    watches.add(8)
    assert watches.looked([7, 8], [8])
    assert watches.open() == [7]


def test_so_many_are_watched_and_no_more() -> None:
    watches = Watches(Hands())
    for number in range(OPEN_MAX + 5):
        watches.add(number)
    assert watches.open() == list(range(5, OPEN_MAX + 5))


async def test_a_submit_within_a_transaction_is_announced_once_that_has_committed(postgres_database: str) -> None:
    async with opened(postgres_database) as here, opened(postgres_database) as there:
        waiting = here.wakeups.subscribe(Topic.DUE)
        assert await waiting.wait(LONG) == Topic.DUE
        with psycopg.connect(postgres_database) as connection:
            there.caller.submit(connection, [task(ids().new())])
            connection.commit()
            assert await waiting.wait(LONG) == Topic.DUE


async def test_who_closes_before_the_commit_leaves_the_looking_to_others(postgres_database: str) -> None:
    async with opened(postgres_database) as here:
        waiting = here.wakeups.subscribe(Topic.DUE)
        assert await waiting.wait(LONG) == Topic.DUE
        with psycopg.connect(postgres_database) as connection:
            async with opened(postgres_database) as there:
                there.caller.submit(connection, [task(ids().new())])
            connection.commit()
            assert await waiting.wait(LONG) == Topic.DUE
