"""How a worker works: frozen, validated at construction, the field at fault named."""

from dataclasses import dataclass, fields

from perdure.domain import limits
from perdure.domain.attempt import CAPTURED_LEVELS
from perdure.domain.ranges import RANGES
from perdure.errors import Invalid

PREFETCH_MIN = 10
CAPACITY_FACTOR = 2
"""The store counts what has ended and is on its way to be settled as held, too."""
PREFETCH_FACTOR = 3
"""Where nothing else is set, at most so many times the slots wait their turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Durations are seconds. Raises `Invalid` with `field` when a value is out of range."""

    concurrency: int = 20
    """How many handlers run at once."""
    prefetch: int | None = None
    """How many more leases may wait their turn here, so that a freed slot need not wait for a claim; `None`: so many
    that what is here is done within 20 ms at the pace of late, at least the smaller of `concurrency` and 10, at most
    three times `concurrency`; beyond the least, what waits for a quarter of a second goes back. It is used only while
    handlers take less than a second on the average, and what waits for 5 seconds goes back in any case, because what
    waits here runs nowhere else.
    """
    queues: tuple[str, ...] | None = None
    """Which lines of work; `None`: `default` and the default queues of the registered kinds."""
    organizations: tuple[str, ...] = ()
    """Which organizations; empty for all that it is granted."""
    capabilities: tuple[str, ...] = ()
    """What this machine has that tasks may ask for."""
    name: str | None = None
    """For people; `None`: host and process id."""
    build: str = ""
    """Which build of the user's program this is; noted on each attempt."""
    grace: float = 30.0
    """How long a draining worker lets its handlers go on before it hands their tasks back."""
    stop_grace: float = 10.0
    """How long a handler that was told to stop (cancel, timeout, lost lease) may take before it is given up."""
    default_timeout: float | None = None
    """The timeout of attempts for which neither task nor kind has one."""
    poll: float = 2.0
    """How often an idle worker asks for work when no hint comes; up to half as much again is added by chance."""
    claim_wait: float = 0.0
    """How long a claim waits for work at a source that is far away; 0: it answers at once, and hints tell of work."""
    control_interval: float = 0.25
    """How often it asks for cancels while it holds anything."""
    heartbeat: float = 20.0
    """How often it says that it is there and learns its operator's orders."""
    report_interval: float = 0.2
    """How long progress is gathered before it is sent."""
    task_logs: str = "info"
    """The least severe line of a handler that is kept with its task; `off`: none."""
    max_tasks: int | None = None
    """After so many claimed tasks the worker drains, to be started afresh by its supervisor."""
    stop_when_idle: bool = False
    """Drain as soon as a claim finds nothing and nothing is held."""
    keeper_thread: bool = True
    """Keep leases in a thread of its own, where a busy event loop cannot starve it. Simulations turn it off."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in RANGES and not (value is None and each.default is None):
                RANGES[each.name].check(each.name, value)
        if self.queues is not None and not self.queues:
            raise Invalid("queues must name at least one queue", field="queues")
        if self.task_logs not in CAPTURED_LEVELS:
            levels = ", ".join(CAPTURED_LEVELS)
            raise Invalid(f"task_logs must be one of {levels}, not {self.task_logs!r}", field="task_logs")
        if len(self.capabilities) > limits.CAPABILITIES_MAX:
            raise Invalid(f"at most {limits.CAPABILITIES_MAX} capabilities", field="capabilities")

    def prefetch_for(self, concurrency: int) -> int:
        """How many leases may wait beside `concurrency` running ones, however short handlers are."""
        return PREFETCH_FACTOR * concurrency if self.prefetch is None else self.prefetch

    def capacity_for(self, concurrency: int) -> int:
        """How many leases it may hold at once: what has ended and is on its way to be settled counts, too."""
        return CAPACITY_FACTOR * (concurrency + self.prefetch_for(concurrency))
