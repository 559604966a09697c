"""Asking for lanes, from transactions that may stay open."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from backends.postgres.conftest import NOW_US
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.lanes import KEPT_US, Lane, Lanes, remove_idle

MAIL = Lane("default", "mail", "email.send", (), 4)
OTHER = Lane("default", "mail", "email.read", (), 4)


@contextmanager
def open_transaction(url: str, now_us: int = NOW_US) -> Iterator[Transaction]:
    """A transaction that waits for no lock for long, committed at the end."""
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL lock_timeout = '2s'")
        yield Transaction(connection, now_us)


def test_transactions_that_stay_open_ask_for_one_lane_side_by_side(postgres_database: str) -> None:
    with open_transaction(postgres_database) as tx:
        made = Lanes().numbers(tx, [MAIL])
    with open_transaction(postgres_database) as one, open_transaction(postgres_database) as other:
        assert Lanes().numbers(one, [MAIL]) == made
        assert Lanes().numbers(other, [MAIL, OTHER])[MAIL] == made[MAIL]


def test_a_lane_that_is_asked_for_again_is_not_removed_and_one_that_was_gets_another_number(
    postgres_database: str,
) -> None:
    with open_transaction(postgres_database) as tx:
        made = Lanes().numbers(tx, [MAIL, OTHER])
        remove_idle(tx, 10)
    with open_transaction(postgres_database, NOW_US + KEPT_US) as tx:
        assert Lanes().numbers(tx, [MAIL])[MAIL] == made[MAIL]
        remove_idle(tx, 10)
        again = Lanes().numbers(tx, [MAIL, OTHER])
    assert again[MAIL] == made[MAIL]
    assert again[OTHER] not in made.values()
