"""Adding tasks to running jobs: a transaction has the file to itself, so nothing moves in between."""

from collections.abc import Sequence

from perdure.domain.task import Task
from perdure.errors import InvariantBroken, PerdureError
from perdure.store.job_ledger import Grown, Growth
from perdure.store.relational import growing
from perdure.store.relational.lanes import Lanes
from perdure.store.sqlite.submission import write_tasks
from perdure.store.sqlite.transaction import Transaction


def grow(tx: Transaction, growths: Sequence[Growth], lanes: Lanes) -> list[Grown | PerdureError]:
    """Add tasks to the jobs of live attempts, one growth after the other."""

    def write(tasks: Sequence[Task], job: int) -> list[int]:
        first = write_tasks(tx, tasks, lanes, job=job).first
        return list(range(first, first + len(tasks)))

    return growing.grow(tx, growths, write, InvariantBroken)
