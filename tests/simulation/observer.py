"""Sees every move that a commit makes, through triggers in the simulated database; the ledger knows nothing of it."""

from pathlib import Path
from typing import NamedTuple

import apsw

MOVES_TABLE = """
CREATE TABLE simulated_moves (
    m INTEGER PRIMARY KEY, task INTEGER NOT NULL, what TEXT NOT NULL, state TEXT, attempt TEXT,
    generation INTEGER, due_us INTEGER
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
    INSERT INTO simulated_moves (task, what, state, attempt, generation, due_us)
    VALUES (new.n, 'end', new.state, new.attempt_id, new.generation, new.due_us);
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
        query = "SELECT m, task, what, state, attempt, generation, due_us FROM simulated_moves WHERE m > ? ORDER BY m"
        found = [Move(*row) for row in self.connection.execute(query, (self._seen,))]
        if found:
            self._seen = found[-1].m
        return found

    def task(self, number: int) -> TaskRow:
        """The facts of one task."""
        query = (
            "SELECT id, idempotency_key, job, rule, parents, timeout_us, max_attempts, max_losses "
            f"FROM {self.table('tasks')} WHERE n = ?"
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

    def open_work(self) -> int:
        """How many tasks have not ended, plus what cascades have still to look at."""
        query = f"SELECT (SELECT count(*) FROM {self.table('live')}) + (SELECT count(*) FROM {self.table('frontier')})"
        return int(next(iter(self.connection.execute(query)))[0])

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()
