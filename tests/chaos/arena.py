"""Where a case takes place: a store, an effect ledger, clients' logs, a crew of processes, and what was found wrong."""

import asyncio
import random
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import perdure
from chaos.app import make_app
from chaos.crew import Crew
from chaos.effects import Effects
from chaos.grounds import Ground
from chaos.operations import OperationLog
from conformance.histories import broken_histories
from perdure.domain.states import ENDED
from perdure.store.views import TaskFilter, TaskView
from perdure.store.views import Views as StoreViews

LOOK_SECONDS = 0.02
FACTS_SHOWN = 6


class NotRun(Exception):
    """The case needs something that this machine does not have."""


@dataclass
class Arena:
    """What a case works with. `check` notes what is wrong and goes on; `figure` notes what was measured."""

    folder: Path
    quick: bool
    seed: int
    ground: Ground
    crew: Crew
    effects: Effects
    app: perdure.App
    log: OperationLog
    wrong: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    recovery: float | None = None
    """The worst time in seconds from the heal to the last task's end."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def check(self, condition: object, fact: str) -> None:
        """Note a fact as wrong unless the condition holds."""
        if not condition:
            self.wrong.append(fact)

    def figure(self, **figures: Any) -> None:
        """Note what was measured."""
        self.figures |= {
            name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()
        }

    def recovered(self, seconds: float, at_most: float) -> None:
        """Note how long recovery took. The bound is the promise in the long tier; a busy machine gets more in the
        quick one.
        """
        self.recovery = max(seconds, self.recovery or 0.0)
        bound = at_most + (20.0 if self.quick else 0.0)
        self.check(seconds <= bound, f"recovery took {seconds:.2f} s, promised are {at_most:g} s")

    async def until(self, condition: Callable[[], object], seconds: float, what: str) -> bool:
        """Wait for something that happens in another process; when it does not in time, that is wrong."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                self.wrong.append(f"not within {seconds:g} s: {what}")
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def until_async(self, condition: Callable[[], Awaitable[object]], seconds: float, what: str) -> bool:
        """The same for a condition that asks the store."""
        end = time.monotonic() + seconds
        while not await condition():
            if time.monotonic() > end:
                self.wrong.append(f"not within {seconds:g} s: {what}")
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def submit(self, kind: str, numbers: range, *, payload: Any = None, **options: Any) -> list[str]:
        """Submit many tasks in one round trip, each acknowledged in the log: their ids."""
        calls = [
            self.app.call(kind, payload={"number": n, **(payload or {})}, idempotency_key=f"{kind}-{n}", **options)
            for n in numbers
        ]
        handles = await self.app.submit_many(calls)
        for n, handle in zip(numbers, handles, strict=True):
            self.log.answered(f"{kind}-{n}", id=handle.id)
        return [handle.id for handle in handles]

    async def views(self) -> StoreViews:
        """What can be read of the store."""
        return (await self.app.operations()).views

    async def counts(self) -> Counter[str]:
        """How many tasks are in each state."""
        overview = await (await self.views()).overview("default")
        counts: Counter[str] = Counter()
        for row in overview.counts:
            counts[str(row.state)] += row.tasks
        return counts

    async def open_tasks(self) -> int:
        """How many tasks have not ended."""
        return sum(tasks for state, tasks in (await self.counts()).items() if state not in ENDED)

    async def all_ended(self, seconds: float) -> bool:
        """Wait until no task is unfinished."""

        async def ended() -> bool:
            return await self.open_tasks() == 0

        done = await self.until_async(ended, seconds, "all tasks ended")
        if not done:
            self.wrong.append(f"left over: {dict(await self.counts())}")
        return done

    async def state(self, task_id: str) -> str:
        """The state of one task."""
        view = await (await self.views()).task("default", task_id)
        return "absent" if view is None else str(view.state)

    async def tasks(self) -> list[TaskView]:
        """Every task of the store."""
        rows: list[TaskView] = []
        views, cursor = await self.views(), None
        while True:
            page = await views.tasks("default", TaskFilter(), 1_000, cursor)
            rows += page.rows
            cursor = page.cursor
            if cursor is None:
                return rows

    async def judge(self, *, ended: bool = True, claims_undone: bool = False) -> None:
        """What must hold at the end of every case. `claims_undone`: a crash may have taken back claims, which await no
        disk: their runs are strangers to the store, and nothing that they sent was taken.
        """
        tasks = {each.id: each for each in await self.tasks()}
        acknowledged = {entry["id"] for entry in self.log.read("answered").values() if "id" in entry}
        jobs = {each.job for each in tasks.values()}
        lost = acknowledged - tasks.keys() - jobs
        self.check(not lost, f"{len(lost)} acknowledged submits are lost: {sorted(lost)[:FACTS_SHOWN]}")
        keys = Counter(each.idempotency_key for each in tasks.values() if each.idempotency_key is not None)
        double = [key for key, count in keys.items() if count > 1]
        self.check(not double, f"keys with several tasks: {double[:FACTS_SHOWN]}")
        if ended:
            left = [each.id for each in tasks.values() if each.state not in ENDED]
            self.check(not left, f"{len(left)} tasks have not ended: {left[:FACTS_SHOWN]}")
        await self._judge_effects(tasks, claims_undone)
        found = await asyncio.to_thread(self.ground.contradictions)
        self.wrong += [f"rows contradict each other: {fact}" for fact in found[:FACTS_SHOWN]]
        world: Any = SimpleNamespace(views=await self.views())
        self.wrong += [f"history: {fact}" for fact in (await broken_histories(world))[:FACTS_SHOWN]]

    async def _judge_effects(self, tasks: dict[str, TaskView], claims_undone: bool) -> None:
        """Every run had a lease of its own, runs are within budget, and every success ran to its end."""
        starts, ends = self.effects.by_task("start"), self.effects.by_task("end")
        views = await self.views()
        for task_id, runs in starts.items():
            task = tasks.get(task_id)
            if task is None or (len(runs) == 1 and task.generation == 1):
                continue
            known = {each.id for each in await views.attempts("default", task_id)}
            strays = [run.attempt for run in runs if run.attempt not in known]
            self.check(
                claims_undone or not strays, f"task {task_id} ran as attempts that the store does not know: {strays}"
            )
            twice = [attempt for attempt, n in Counter(run.attempt for run in runs).items() if n > 1]
            self.check(not twice, f"attempts that ran twice: {twice}")
        for task in tasks.values():
            if task.state == "succeeded" and task.kind in ("nap", "busy", "turns"):
                self.check(task.id in ends, f"task {task.id} succeeded and no handler came to its end")


async def held(
    folder: Path, ground: Ground, seed: int, quick: bool, seconds: float, case: Callable[[Arena], Awaitable[None]]
) -> Arena:
    """Run one case in a folder of its own, for so many seconds at most. Raises `NotRun`.

    Whatever it raises else is one more thing that is wrong.
    """
    effects, log = Effects(folder / "effects"), OperationLog(folder / "operations")
    with Crew(folder, ground.store, effects.path) as crew:
        app = make_app(ground.store, effects)
        arena = Arena(folder, quick, seed, ground, crew, effects, app, log)
        try:
            async with asyncio.timeout(seconds), app:
                await case(arena)
        except NotRun:
            raise
        except TimeoutError:
            arena.wrong.append(f"it did not end within {seconds:g} s")
        except Exception:
            arena.wrong.append(traceback.format_exc())
        finally:
            effects.close()
        if arena.wrong:
            arena.wrong += [words for log in sorted(folder.rglob("process-*.log")) if (words := _words(log))][:4]
    return arena


def _words(log: Path) -> str:
    """The end of what a process printed."""
    words = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    return f"{log.name} of {log.parent.name}:\n{words}" if words else ""
