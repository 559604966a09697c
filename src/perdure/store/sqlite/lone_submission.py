"""Submitting one task that asks for nothing special: the rows that `submission` writes, in fewer and plainer steps.

Whoever submits one task waits for every step. What is not plain goes the way that many tasks go.
"""

from collections.abc import Sequence
from typing import Any

import apsw

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.domain.task import NOTHING_RARE, Task, Terms
from perdure.store.ledger import Submitted
from perdure.store.relational.admission import Answer
from perdure.store.relational.lanes import Lane, Lanes, lane_of
from perdure.store.relational.sharing import specification_of
from perdure.store.sqlite import submission
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic

JSON = "json"


class LoneSubmission:
    """Meets `Shapes.submit`. Used by one thread at a time."""

    def __init__(self) -> None:
        self._terms: Terms | None = None
        """Those of the last lone task: the next one mostly shares the object."""
        self._lane: Lane
        self._specification: tuple[Any, ...]

    def submit(self, tx: Transaction, tasks: Sequence[Task], lanes: Lanes) -> list[Answer]:
        """Store tasks, however many there are."""
        if len(tasks) == 1 and _is_plain(tasks[0]):
            answer = self._write(tx, tasks[0], lanes)
            if answer is not None:
                return [answer]
        return submission.submit(tx, tasks, lanes)

    def _write(self, tx: Transaction, task: Task, lanes: Lanes) -> Submitted | None:
        """Nothing is written when this gives `None`."""
        terms, now_us = task.terms, tx.now_us
        key, request_hash = task.rare.idempotency_key, task.rare.request_hash
        look = tx.step("lone_look", terms.organization, terms.principal, key, now_us)
        ((newest, last_place, bounded, repeated),) = look
        if bounded or repeated:
            return None
        if terms is not self._terms:
            self._terms, self._lane, self._specification = terms, lane_of(terms), specification_of(terms)
        lane = lanes.number(tx, self._lane)
        n = newest + 1
        try:
            own = (n, task.id, task.payload.encode(), now_us, lane, key, request_hash)
            tx.step("lone_task", *own, *self._specification)
        except apsw.ConstraintError:
            # A call that is repeated because its answer was lost is answered there.
            return None
        tx.step("lone_count", lane)
        tx.step("lone_live", n, terms.organization, lane, last_place + 1, now_us, terms.ttl_us)
        if key is not None:
            bound = (terms.organization, terms.principal, key, task.id, request_hash)
            tx.step("lone_key", *bound, now_us, limits.IDEMPOTENCY_KEY_LIFE_US)
        tx.announce(Topic.READY)
        return Submitted(task.id, TaskState.QUEUED, False)


def _is_plain(task: Task) -> bool:
    """Whether a task has nothing of its own but its id, payload and idempotency key, and joins its lane at once."""
    terms, rare = task.terms, task.rare
    if rare is not NOTHING_RARE and rare._replace(idempotency_key=None, request_hash=None) != NOTHING_RARE:
        return False
    return terms.encoding == JSON and (terms.ttl_us is None or terms.ttl_us > 0)
