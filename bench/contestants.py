"""Who is measured: how much each is given, how it is asked what is left, and how it is set up."""

from dataclasses import dataclass

from bench.environments import version_of
from bench.servers import Postgres, Redis


@dataclass(frozen=True, slots=True)
class Contestant:
    """One system. Sizes are for seconds rather than minutes of each measurement."""

    name: str
    module: str
    environment: str | None
    package: str
    server: str
    left: str
    """What counts the tasks that are not settled: a query, or commands of Redis whose answers are added up."""
    setup: str
    one: int
    together: int
    bulk: int | None
    drain: int
    backlog: int | None = None
    churn: int | None = None

    def version(self) -> str:
        """Name and version. Raises `NotInstalled`."""
        return f"{self.name} {version_of(self.environment, self.package)}"

    def pending(self, server: Postgres | Redis, url: str) -> int:
        """How many tasks are not settled yet. The database is asked on a connection of its own."""
        if isinstance(server, Redis):
            return sum(int(server.ask(command)) for command in self.left.split(";"))
        return server.number(url, self.left)


OURS = Contestant(
    name="perdure",
    module="bench.systems.ours",
    environment=None,
    package="perdure",
    server="postgres",
    left="SELECT count(*) FROM perdure_live",
    setup="psycopg, 100 handlers at once, everything else as it comes",
    one=2_000,
    together=9_600,
    bulk=30_000,
    drain=30_000,
    backlog=200_000,
    churn=120_000,
)
PGQUEUER = Contestant(
    name="PgQueuer",
    module="bench.systems.pgqueuer",
    environment="pgqueuer",
    package="pgqueuer",
    server="postgres",
    left="SELECT count(*) FROM pgqueuer WHERE status IN ('queued', 'picked')",
    setup="asyncpg and uvloop, batches of 100, no limit of tasks at once; submits by a pool of 10",
    one=2_000,
    together=3_200,
    bulk=30_000,
    drain=20_000,
    backlog=200_000,
    churn=60_000,
)
PROCRASTINATE = Contestant(
    name="Procrastinate",
    module="bench.systems.procrastinate",
    environment="procrastinate",
    package="procrastinate",
    server="postgres",
    left="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
    setup="psycopg, 20 tasks at once, a pool of 12",
    one=1_000,
    together=1_600,
    bulk=10_000,
    drain=2_000,
)
DBOS = Contestant(
    name="DBOS",
    module="bench.systems.dbos",
    environment="dbos",
    package="dbos",
    server="postgres",
    left="SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')",
    setup="a queue without a limit of its own, asked every second",
    one=800,
    together=1_600,
    bulk=None,
    drain=1_500,
)
OBAN = Contestant(
    name="Oban",
    module="bench.systems.oban",
    environment="oban",
    package="oban",
    server="postgres",
    left="SELECT count(*) FROM oban_jobs WHERE state IN ('available', 'executing', 'scheduled', 'retryable')",
    setup="psycopg and uvloop, 20 tasks at once, a pool of 10",
    one=1_000,
    together=1_600,
    bulk=5_000,
    drain=4_000,
)
CELERY = Contestant(
    name="Celery",
    module="bench.systems.celery",
    environment="celery",
    package="celery",
    server="redis",
    left="LLEN celery;HLEN unacked",
    setup="two processes forked before (prefork), acks_late, results ignored",
    one=1_000,
    together=1_600,
    bulk=None,
    drain=1_500,
)
DRAMATIQ = Contestant(
    name="Dramatiq",
    module="bench.systems.dramatiq",
    environment="dramatiq",
    package="dramatiq",
    server="redis",
    left="HLEN dramatiq:default.msgs",
    setup="one process of 8 threads",
    one=2_000,
    together=3_200,
    bulk=None,
    drain=4_000,
)
PEERS = (PGQUEUER, PROCRASTINATE, OBAN, DBOS, CELERY, DRAMATIQ)
