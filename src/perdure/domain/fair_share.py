"""Fair share: organizations take turns within a priority, by their weights. Standard library only.

Start-time fair queueing: an organization's virtual time grows by 1/weight with each task that it gets, and the next
task is one of the organization that is least far. One that was idle goes on from where the others are, so nobody saves
up turns, and one that asks for a single task waits for one task of each of the others at most.

The times are kept in memory by whoever claims, and nobody else's are needed: what is fair in each process is fair in
all of them together.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

KNOWN_MAX = 10_000
"""So many organizations may be ahead of the others before it is looked who no longer is."""


class Line(NamedTuple, Generic[T]):
    """What an organization has waiting, oldest first, and the age of the first: the lower, the older."""

    age: int
    tasks: Iterator[T]


class Turns(NamedTuple, Generic[T]):
    """Who gets the next turns, and how far everybody is then."""

    picked: list[T]
    reached: dict[str, float]
    served: float


class Before(NamedTuple):
    """How far those who got turns were before that."""

    priority: int
    reached: dict[str, float | None]
    served: float


class Shares:
    """How far each organization is in each priority. Used by one thread at a time."""

    def __init__(self) -> None:
        self._reached: dict[int, dict[str, float]] = {}
        self._served: dict[int, float] = {}

    def turns(self, priority: int, lines: Mapping[str, Line[T]], want: int, weight: Callable[[str], float]) -> Turns[T]:
        """The next `want` tasks of organizations that have some waiting. Nothing is remembered before `keep`."""
        reached, served = self._reached.get(priority, {}), self._served.get(priority, 0.0)
        heap = [(max(served, reached.get(name, 0.0)), line.age, name) for name, line in lines.items()]
        heapify(heap)
        picked: list[T] = []
        ahead: dict[str, float] = {}
        while heap and len(picked) < want:
            start, age, name = heap[0]
            task = next(lines[name].tasks, None)
            if task is None:
                heappop(heap)
                continue
            picked.append(task)
            served = max(served, start)
            ahead[name] = start + 1 / weight(name)
            heapreplace(heap, (ahead[name], age, name))
        return Turns(picked, ahead, served)

    def keep(self, priority: int, turns: Turns[T]) -> Before:
        """These turns were taken. Returns how it was before, for `undo`."""
        reached = self._reached.setdefault(priority, {})
        before = Before(priority, {name: reached.get(name) for name in turns.reached}, self._served.get(priority, 0.0))
        reached.update(turns.reached)
        served = self._served[priority] = max(turns.served, self._served.get(priority, 0.0))
        if len(reached) > KNOWN_MAX:
            # Who is not ahead begins where the others are, known or not.
            self._reached[priority] = {name: far for name, far in reached.items() if far > served}
        return before

    def undo(self, before: Before) -> None:
        """These turns were not taken after all, nor any that were kept later."""
        reached = self._reached.setdefault(before.priority, {})
        for name, far in before.reached.items():
            if far is None:
                reached.pop(name, None)
            else:
                reached[name] = far
        self._served[before.priority] = before.served


def aged(priority: int, waited_us: int, ageing_us: int, most_urgent: int) -> int:
    """The priority by which a lane counts whose first task has waited so long: one more for each `ageing_us`."""
    return min(most_urgent, priority + max(0, waited_us) // ageing_us) if ageing_us else priority
