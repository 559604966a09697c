"""Adding tasks to running jobs, while others end their parents or add to the same job."""

from collections.abc import Sequence

from perdure.domain.task import Task
from perdure.errors import PerdureError
from perdure.store.job_ledger import Grown, Growth
from perdure.store.postgres.job_submission import numbers_of
from perdure.store.postgres.submission import collided, write_tasks
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import growing
from perdure.store.relational.lanes import Lanes


def grow(tx: Transaction, growths: Sequence[Growth], lanes: Lanes) -> list[Grown | PerdureError]:
    """Add tasks to the jobs of live attempts, one growth after the other."""

    def write(tasks: Sequence[Task], job: int) -> list[int]:
        return numbers_of(write_tasks(tx, tasks, lanes, job=job, admitted=True), len(tasks))

    return growing.grow(tx, growths, write, collided)
