"""Commits that collide, for stores that are spoken to as CockroachDB is: all of them are then run again."""

import functools
import random

from psycopg import errors

from perdure.store.postgres.dialects import COCKROACHDB
from perdure.store.postgres.session import Session

PART = 8
"""One commit in so many collides, by chance and the same in each run."""


@functools.cache
def begin() -> None:
    """From now on in this process."""
    commit, dice = Session.commit, random.Random(PART)

    def commits(self: Session, hint: str | None = None) -> None:
        if self.dialect is COCKROACHDB and dice.randrange(PART) == 0:
            raise errors.SerializationFailure("restart transaction: TransactionRetryWithProtoRefreshError")
        commit(self, hint)

    Session.commit = commits  # type: ignore[method-assign]
