"""A second account of jobs that grow and jobs that are run again."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from perdure.domain.states import TaskState
from perdure.errors import Conflict, LeaseLost, PerdureError
from perdure.store.job_ledger import Growth
from simulation.coverage import Coverage
from simulation.known import Commit, Known, Step
from simulation.observer import Observer

FAILED = frozenset({TaskState.FAILED, TaskState.DEAD_LETTERED, TaskState.EXPIRED})
FALLEN = frozenset({"upstream_failed", "trigger_unmet"})


class JobAccount:
    """Which tasks each job has, by name. A commit is judged once all that it moved is seen."""

    def __init__(
        self,
        wrong: Callable[[str], None],
        coverage: Coverage,
        observer: Observer,
        tasks: Mapping[str, Known],
        lives: Callable[[Any], bool],
    ) -> None:
        """`lives`: whether an attempt may act now."""
        self._wrong = wrong
        self._coverage = coverage
        self._observer = observer
        self._tasks = tasks
        self._lives = lives
        self._by_name: dict[tuple[int, str | None], str] = {}
        self._by_job: dict[int, dict[int, Known]] = defaultdict(dict)
        self._began: dict[str, TaskState | None] = {}
        """What began in this commit, and the state in which it was before."""
        self._job: int | None = None
        self._ended: dict[int, tuple[TaskState | None, str | None]] = {}
        """State and reason of each task of the job that is to be run again, before it is."""

    def before(self, commit: Commit) -> None:
        """A commit is going to be looked at."""
        self._began.clear()
        self._job = None
        if commit.verb == "retry_job" and (found := self._observer.job(commit.arguments[1])) is not None:
            self._job = found
            mine = self._by_job[found]
            self._ended = {n: (known.state, known.reason) for n, known in mine.items() if not known.removed}

    def moved(self, commit: Commit, step: Step) -> None:
        """A task has moved."""
        if not step.begins:
            return
        known = step.known
        self._began[known.row.id] = step.old
        if known.row.job is not None and step.old is None:
            named = (known.row.job, known.row.name)
            other = self._by_name.get(named)
            if other is not None and not self._tasks[other].removed:
                self._wrong(f"{commit.verb} made a second task {named}: {known.row.id} beside {other}")
            self._by_name[named] = known.row.id
            self._by_job[known.row.job][known.number] = known

    def after(self, commit: Commit) -> None:
        """Judge what it did."""
        if commit.verb == "grow":
            self._judge_growths(commit)
        elif commit.verb == "retry_job":
            self._judge_retry(commit)

    # Growth

    def _judge_growths(self, commit: Commit) -> None:
        growths: list[Growth] = commit.arguments[0]
        asked = {task.id for growth in growths for task in growth.tasks}
        if strangers := self._began.keys() - asked:
            self._wrong(f"grow made {sorted(strangers)}, which nobody asked for")
        if commit.refused:
            if self._began:
                self._wrong(f"grow was refused by {commit.answer!r}, and made {sorted(self._began)}")
            return
        for growth, answer in zip(growths, commit.answer, strict=True):
            self._judge_growth(growth, answer)

    def _judge_growth(self, growth: Growth, answer: Any) -> None:
        made = {task.id for task in growth.tasks} & self._began.keys()
        lives, grower = self._lives(growth.hold), self._tasks[growth.hold.task_id]
        if isinstance(answer, PerdureError):
            self._coverage.feats[f"a growth met {type(answer).__name__}"] += 1
            if made:
                self._wrong(f"growth of {growth.hold.task_id} was refused by {answer!r}, and made {sorted(made)}")
            if isinstance(answer, LeaseLost) and lives:
                self._wrong(f"growth of {growth.hold.attempt_id} got {answer!r}, but the attempt lives")
            return
        if not lives or grower.state is TaskState.CANCELLING:
            self._wrong(f"a growth of attempt {growth.hold.attempt_id} was taken, which is {grower.state}")
        if answer.added != len(made):
            self._wrong(f"growth answered {answer}, and made {sorted(made)}")
        names = {str(task.rare.name) for task in growth.tasks}
        right = {name: self._by_name.get((grower.row.job or 0, name)) for name in names}
        if answer.task_ids != right:
            self._wrong(f"growth answered {answer}, there are {right}")
        again = "all of it was there" if not made else "some of it was there"
        self._coverage.feats["a job grew" if len(made) == len(names) else f"a job grew: {again}"] += 1

    # Running a job again

    def _judge_retry(self, commit: Commit) -> None:
        if commit.refused:
            self._coverage.feats["a retry of a job was refused"] += isinstance(commit.answer, Conflict)
            if self._began:
                self._wrong(f"retry_job was refused by {commit.answer!r}, and began {sorted(self._began)}")
            return
        began = {self._tasks[id].number for id in self._began}
        failed = {n for n, (state, _) in self._ended.items() if state in FAILED}
        must = failed | self._fallen_for(failed)
        may = must
        if any(map(_has_stopped_its_job, self._by_job[self._job or 0].values())):
            # All that was cancelled by that runs again too, also where the one that failed was redriven since.
            may = must | {n for n, (state, why) in self._ended.items() if state == "cancelled" and why in FALLEN}
        if not must <= began or not began <= may:
            self._wrong(f"retry_job {commit.arguments[1]} began {sorted(began)}, not {sorted(must)} (at most {may})")
        if (commit.answer.redriven, commit.answer.revived) != (len(failed), len(began - failed)):
            self._wrong(f"retry_job answered {commit.answer}, and began {len(failed)} and {len(began - failed)}")
        self._coverage.feats["a job was run again"] += 1
        self._coverage.feats["a job was run again: what had been cancelled too"] += bool(began - failed)

    def _fallen_for(self, failed: set[int]) -> set[int]:
        """What was cancelled because of these, directly or through one another."""
        below: dict[int, set[int]] = defaultdict(set)
        for parent, child in self._observer.whole_edges(self._job or 0):
            below[parent].add(child)
        found: set[int] = set()
        waiting = list(failed)
        while waiting:
            for child in below[waiting.pop()] - found:
                state, reason = self._ended.get(child, (None, None))
                if state is TaskState.CANCELLED and reason in FALLEN:
                    found.add(child)
                    waiting.append(child)
        return found


def _has_stopped_its_job(known: Known) -> bool:
    return known.row.if_failed == "cancel_job" and not FAILED.isdisjoint(map(TaskState, known.ends.values()))
