"""Submitting tasks that differ in id and payload only: the rows that `submission` writes, from columns to columns.

Whoever submits many at once waits for what is done for each of them. What is not plain goes the way of all others.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from perdure.domain.states import TaskState
from perdure.domain.task import Alike, Task
from perdure.domain.unique import SubmitOutcome
from perdure.store.ledger import Submitted
from perdure.store.relational.admission import Answer
from perdure.store.relational.counting import QUEUED, count_moves
from perdure.store.relational.lanes import Lanes, lane_of
from perdure.store.relational.line import places
from perdure.store.relational.sharing import specification_of
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic

Submission = Callable[[Transaction, Sequence[Task], Lanes], list[Answer]]

WIDTH = 3
"""How many values the rows of `task_insert_alike` have."""


def alike_first(others: Submission) -> Submission:
    """What meets `Shapes.submit`: `others` submits what is not several tasks alike that nothing can refuse."""

    def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes) -> list[Answer]:
        if isinstance(tasks, Alike) and len(tasks) > 1 and _is_free(tx, tasks):
            return _write(tx, tasks, lanes)
        return others(tx, tasks, lanes)

    return submit


def _is_free(tx: Transaction, tasks: Alike) -> bool:
    """Whether they join their lane at once, however many there are."""
    ttl_us = tasks.terms.ttl_us
    return (ttl_us is None or ttl_us > 0) and not tx.value("depth_peek")


def _write(tx: Transaction, tasks: Alike, lanes: Lanes) -> list[Answer]:
    first, count = int(tx.value("task_last")) + 1, len(tasks)
    lane = lanes.number(tx, lane_of(tasks.terms))
    rows: list[Any] = [None] * (WIDTH * count)
    rows[0::WIDTH] = range(first, first + count)
    rows[1::WIDTH] = tasks.ids
    rows[2::WIDTH] = tasks.payloads
    tx.insert("task_insert_alike", (tx.now_us, lane, *specification_of(tasks.terms)), rows, WIDTH)
    count_moves(tx, [(lane, None, QUEUED, count)])
    tx.run("live_insert_plain", first=first, before=places(tx, count))
    tx.announce(Topic.READY)
    told = zip(tasks.ids, repeat(TaskState.QUEUED), repeat(False), repeat(SubmitOutcome.CREATED))
    return list(map(Submitted._make, told))
