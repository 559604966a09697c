"""Sees every move that a commit makes, through triggers in the simulated database; the ledger knows nothing of it."""

from pathlib import Path
from typing import NamedTuple

import apsw

MOVES_TABLE = """
CREATE TABLE simulated_moves (
    m INTEGER PRIMARY KEY, task INTEGER NOT NULL, what TEXT NOT NULL, state TEXT, attempt TEXT,
    generation INTEGER, due_us INTEGER, reason TEXT
)
"""

TRIGGERS = """
CREATE TRIGGER simulated_begin AFTER INSERT ON {live} BEGIN
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us)
    VALUES (new.n, 'begin', new.state, new.attempt_id, new.generation, new.due_us);
END;
CREATE TRIGGER simulated_move AFTER UPDATE OF state, attempt_id ON {live}
WHEN old.state <> new.state OR old.attempt_id IS NOT new.attempt_id BEGIN
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us)
    VALUES (new.n, 'move', new.state, new.attempt_id, new.generation, new.due_us);
END;
CREATE TRIGGER simulated_leave AFTER DELETE ON {live} BEGIN
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us)
    VALUES (old.n, 'leave', old.state, old.attempt_id, old.generation, old.due_us);
END;
CREATE TRIGGER simulated_end AFTER INSERT ON {ends} BEGIN
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us, reason)
    VALUES (new.n, 'end', new.state, new.attempt_id, new.generation, new.due_us, new.reason);
END;
CREATE TRIGGER simulated_rewrite AFTER UPDATE OF state, result ON {ends}
WHEN old.state <> new.state OR old.result IS NOT new.result BEGIN
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us)
    VALUES (new.n, 'rewrite', new.state, new.attempt_id, new.generation, new.due_us);
END;
CREATE TRIGGER simulated_remove AFTER DELETE ON {ends} BEGIN
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us)
    VALUES (old.n, 'remove', old.state, old.attempt_id, old.generation, old.due_us);
END;
"""


class Move(NamedTuple):
    """One change of one task's row."""

    m: int
    task: int
    what: str
    state: str
    attempt: str | None
    generation: int
    due_us: int
    reason: str | None
    """Of an end."""


class TaskRow(NamedTuple):
    """The immutable facts that the witness goes by."""

    id: str
    key: str | None
    job: int | None
    rule: str
    parents: int
    timeout_us: int | None
    max_attempts: int
    max_losses: int
    organization: str
    kind: str
    queue: str
    priority: int
    name: str | None
    options: str | None
    payload: bytes | str | None
    job_id: str | None
    if_failed: str


class Policy(NamedTuple):
    """What one document says about claims."""

    organization: str
    type: str
    name: str
    paused: int | None
    concurrency: int | None
    rate: int | None
    per: float | None


class Observer:
    """A connection of one's own to the simulated database."""

    def __init__(self, path: Path) -> None:
        self.connection = apsw.Connection(str(path))
        self.connection.set_busy_timeout(5_000)
        names = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        self._prefix = "perdure_" if "perdure_live" in names else ""
        self._seen = 0

    def install(self) -> None:
        """Put the triggers in place."""
        self.connection.execute(MOVES_TABLE)
        self.connection.execute(TRIGGERS.format(live=self.table("live"), ends=self.table("ends")))

    def table(self, name: str) -> str:
        """A table's name in the database."""
        return self._prefix + name

    def moves(self) -> list[Move]:
        """What was moved since the last look, in order."""
        query = (
            "SELECT m, task, what, state, attempt, generation, due_us, reason FROM simulated_moves "
            "WHERE m > ? ORDER BY m"
        )
        found = [Move(*row) for row in self.connection.execute(query, (self._seen,))]
        if found:
            self._seen = found[-1].m
        return found

    def task(self, number: int) -> TaskRow:
        """The facts of one task."""
        query = (
            "SELECT tasks.id, tasks.idempotency_key, job, rule, parents, timeout_us, max_attempts, max_losses, "
            "tasks.organization, kind, queue, priority, tasks.name, options, payload, jobs.id, if_failed "
            f"FROM {self.table('tasks')} AS tasks JOIN {self.table('lanes')} AS lanes USING (lane) "
            f"LEFT JOIN {self.table('jobs')} AS jobs ON jobs.j = tasks.job WHERE n = ?"
        )
        return TaskRow(*next(iter(self.connection.execute(query, (number,)))))

    def parents(self, number: int) -> list[tuple[str | None, int, str]]:
        """Each parent of a task: its end state (`None` while it is open), its generation, and the edge's policy."""
        query = (
            f"SELECT ends.state, coalesce(ends.generation, live.generation), edges.policy "
            f"FROM {self.table('edges')} AS edges LEFT JOIN {self.table('ends')} AS ends ON ends.n = edges.parent "
            f"LEFT JOIN {self.table('live')} AS live ON live.n = edges.parent WHERE edges.child = ?"
        )
        return list(self.connection.execute(query, (number,)))

    def standing(self, number: int) -> tuple[bytes | str | None, int | None]:
        """The payload of a task, and when it is due, if it has not ended."""
        query = (
            f"SELECT tasks.payload, live.due_us FROM {self.table('tasks')} AS tasks "
            f"LEFT JOIN {self.table('live')} AS live USING (n) WHERE n = ?"
        )
        return next(iter(self.connection.execute(query, (number,))))

    def job(self, id: str) -> int | None:
        """The number of a job."""
        query = f"SELECT j FROM {self.table('jobs')} WHERE id = ?"
        return next((int(number) for (number,) in self.connection.execute(query, (id,))), None)

    def whole_edges(self, job: int) -> list[tuple[int, int]]:
        """Parent and child of each edge of a job, but for children of which a parent was removed."""
        edges = self.table("edges")
        query = (
            f"SELECT edges.parent, edges.child FROM {self.table('tasks')} AS tasks JOIN {edges} AS edges "
            "ON edges.child = tasks.n WHERE tasks.job = ? "
            f"AND (SELECT count(*) FROM {edges} AS above WHERE above.child = tasks.n) = tasks.parents"
        )
        return list(self.connection.execute(query, (job,)))

    def policies(self) -> list["Policy"]:
        """What the documents of queues, organizations and kinds say about claims."""
        query = (
            "SELECT organization, type, name, document ->> '$.paused', document ->> '$.concurrency', "
            f"document ->> '$.rate', document ->> '$.per' FROM {self.table('definitions')} "
            "WHERE type IN ('queue', 'organization', 'kind')"
        )
        return [Policy(*row) for row in self.connection.execute(query)]

    def open_work(self) -> int:
        """How many tasks have not ended, plus what cascades have still to look at."""
        query = f"SELECT (SELECT count(*) FROM {self.table('live')}) + (SELECT count(*) FROM {self.table('frontier')})"
        return int(next(iter(self.connection.execute(query)))[0])

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()
