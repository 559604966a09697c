"""What perdure on PostgreSQL is to reach: each figure beside what it must be and where it is going."""

from collections.abc import Callable
from dataclasses import dataclass

from bench import parts, strain
from bench.contestants import OURS, PEERS, PGQUEUER
from bench.figures import Figures

US, THEM, RAW = OURS.name, PGQUEUER.name, parts.RAW
ON_POSTGRES = [each.name for each in PEERS if each.server == "postgres"]


@dataclass(frozen=True, slots=True)
class Target:
    """One row of the table."""

    name: str
    of: Callable[[Figures], float | None]
    must: float | None
    goal: float | None
    lower: bool = False
    """Whether less is better."""

    def verdict(self, value: float | None) -> str:
        """What has been reached."""
        if value is None:
            return "not measured"
        reached = [
            bound is not None and (value <= bound if self.lower else value >= bound) for bound in (self.goal, self.must)
        ]
        if reached[0]:
            return "goal"
        if reached[1]:
            return "must"
        return "missed" if self.must is not None else "below the goal"


def _ratio(ours: str, system: str, theirs: str) -> Callable[[Figures], float | None]:
    return lambda figures: figures.ratio((US, ours), (system, theirs))


def _median(figure: str, system: str = US) -> Callable[[Figures], float | None]:
    return lambda figures: figures.median(system, figure)


def _worst(ours: str, theirs: str) -> Callable[[Figures], float | None]:
    return lambda figures: figures.worst_ratio((US, ours), (US, theirs))


def _beside_best(figure: str) -> Callable[[Figures], float | None]:
    def value(figures: Figures) -> float | None:
        best = figures.best(ON_POSTGRES, figure)
        return figures.ratio((US, figure), (best, figure)) if best else None

    return value


TARGETS = (
    Target("drain, 1 process / PgQueuer", _ratio(parts.DRAIN, THEM, parts.DRAIN), 1.3, 2.0),
    Target("drain, 1 process / raw claim and complete", _ratio(parts.DRAIN, RAW, parts.RAW_DRAIN), None, 0.7),
    Target("drain, 2 processes / PgQueuer's", _ratio(parts.DRAIN_TWO, THEM, parts.DRAIN_TWO), 1.3, None),
    Target("drain, 2 processes / our 1", _ratio(parts.DRAIN_TWO, US, parts.DRAIN), None, 1.5),
    Target("200,000 queued / 1,000 queued, worst of 5", _worst(strain.MANY, strain.FEW), 0.9, 1.0),
    Target("1,000,000 queued / 1,000 queued, worst of 5", _worst(strain.MILLION, strain.FEW), 0.9, 1.0),
    Target("old snapshot, last / first", _ratio(strain.CHURNED, US, strain.FRESH), 0.75, 0.95),
    Target("a submit committed late starts within, s", _median(strain.LATE), 1.0, None, lower=True),
    Target("beside foreign kinds / without", _ratio(strain.FORBIDDEN, US, strain.WITHOUT), 0.9, 1.0),
    Target("submit bulk / PgQueuer", _ratio(parts.BULK, THEM, parts.BULK), 1.2, None),
    Target("submit bulk / raw by 100", _ratio(parts.BULK, RAW, parts.INSERT_MANY), None, 0.8),
    Target("submit 32 at once / PgQueuer", _ratio(parts.TOGETHER, THEM, parts.TOGETHER), 4.0, None),
    Target("submit 32 at once / raw by 100", _ratio(parts.TOGETHER, RAW, parts.INSERT_MANY), None, 0.5),
    Target("submit one by one / PgQueuer", _ratio(parts.ONE, THEM, parts.ONE), 1.0, None),
    Target("submit one by one / raw", _ratio(parts.ONE, RAW, parts.INSERT_ONE), None, 0.8),
    Target(
        "submit to start p50 / best measured peer on PostgreSQL", _beside_best(parts.START_MEDIAN), 1.0, 0.7, lower=True
    ),
    Target(
        "submit to start p99 / best measured peer on PostgreSQL", _beside_best(parts.START_TAIL), 1.0, 0.7, lower=True
    ),
    Target("fan-out of 10,000, per task / single", _ratio(strain.FAN_OUT, US, strain.SINGLE), 1.5, 1.1, lower=True),
    Target("fan-in of 10,000, per task / single", _ratio(strain.FAN_IN, US, strain.SINGLE), 1.5, 1.1, lower=True),
    Target("8 workers, farthest from an even share, %", _median(strain.UNFAIR), 20.0, None, lower=True),
    Target("worker's memory idle, MB", _median(parts.MEMORY), 60.0, 45.0, lower=True),
    Target(
        "worker's memory after the churn / before",
        lambda figures: figures.ratio((US, strain.MEMORY_CHURNED), (US, strain.MEMORY_FRESH)),
        1.1,
        None,
        lower=True,
    ),
    Target("connections of a worker", _median(parts.CONNECTIONS_BUSY), 3.0, None, lower=True),
    Target("idle CPU, % of a core", _median(parts.IDLE_CPU), 0.5, None, lower=True),
    Target("idle statements a minute", _median(parts.IDLE_STATEMENTS), 30.0, None, lower=True),
    Target("statements per 100 tasks drained", _median(parts.STATEMENTS), 6.0, None, lower=True),
    Target("WAL per task drained, bytes", _median(parts.WAL), 2_048.0, 1_229.0, lower=True),
    Target(
        "WAL per task drained, 1 KB payloads, bytes",
        _median(parts.WAL, parts.name_of(US, 1_000)),
        2_048.0,
        1_229.0,
        lower=True,
    ),
)
NOT_IN_THIS_RUN = "a drain beside 10 million ended tasks (`tests/backends/postgres/test_ten_million_rows.py` has one)"
