"""By which times views tell who is alive, and until when a task is waited for."""

from typing import NamedTuple

from perdure.domain import limits


class WorkerTimes(NamedTuple):
    """Times of the settings, in microseconds."""

    active_us: int = limits.WORKER_ACTIVE_DEFAULT_US
    """How long after its last sign a worker counts as alive."""
    unroutable_us: int = limits.UNROUTABLE_AFTER_DEFAULT_US
    """How long a task may wait while workers serve its queue and none has its kind."""


USUAL = WorkerTimes()
