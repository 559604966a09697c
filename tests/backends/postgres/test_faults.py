"""What PostgreSQL reports says what to do about it."""

import pytest
from psycopg import errors

from perdure.errors import StoreBusy
from perdure.store.postgres.faults import translate
from perdure.store.postgres.submission import Collided

PLACE = "postgresql://server/shop"


@pytest.mark.parametrize("error", [errors.SerializationFailure("s"), errors.DeadlockDetected("d"), Collided("c")])
def test_collisions_are_told_as_contention_and_not_as_a_transaction_left_open(error: Exception) -> None:
    told = translate(error, PLACE)
    assert isinstance(told, StoreBusy)
    assert "smaller batches" in str(told)
    assert "left open" not in str(told)


@pytest.mark.parametrize("error", [errors.LockNotAvailable("l"), errors.QueryCanceled("q")])
def test_what_waited_for_too_long_is_told_to_look_for_a_transaction_left_open(error: Exception) -> None:
    told = translate(error, PLACE)
    assert isinstance(told, StoreBusy)
    assert "left open" in str(told)
