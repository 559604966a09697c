"""The least time that a DAG can take on so many slots, whatever the order in which its ready tasks are run."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush, nsmallest

from perdure.domain.job import critical_path, topological

HEADS_MAX = 64
"""How many starting points are tried; each one costs a pass over the tasks, and any choice of them is a true bound."""


def lower_bound(parents: Mapping[str, Sequence[str]], seconds: Mapping[str, float], slots: int) -> float:
    """Seconds that no schedule on `slots` slots beats.

    A set of tasks none of which can begin before `h`, and after each of which `t` has still to pass, needs
    `h + work / slots + t`. The critical path and the whole work over the slots are the simplest such sets; a wide level
    between two long tasks is one that both of them miss. Where there are more tasks than slots, two of the set follow
    one another on a slot, too: at best the two shortest of the `slots + 1` longest.
    """
    path, _ = critical_path(parents, seconds)
    heads, tails = _heads(parents, seconds), _tails(parents, seconds)
    by_tail = sorted(seconds, key=lambda name: tails[name], reverse=True)
    best = path
    for head in _some(sorted(set(heads.values()))):
        work = 0.0
        longest: list[float] = []
        for name in by_tail:
            if heads[name] >= head:
                work += seconds[name]
                heappush(longest, seconds[name])
                if len(longest) > slots + 1:
                    heappop(longest)
                pair = sum(nsmallest(2, longest[:3])) if len(longest) > slots else 0.0
                best = max(best, head + max(work / slots, pair) + tails[name])
    return best


def _heads(parents: Mapping[str, Sequence[str]], seconds: Mapping[str, float]) -> dict[str, float]:
    """How long after the beginning each task can begin, at the earliest."""
    heads: dict[str, float] = {}
    for name in topological(parents):
        heads[name] = max((heads[parent] + seconds[parent] for parent in parents[name]), default=0.0)
    return heads


def _tails(parents: Mapping[str, Sequence[str]], seconds: Mapping[str, float]) -> dict[str, float]:
    """How long after the end of each task the whole goes on, at the least."""
    tails = dict.fromkeys(parents, 0.0)
    for name in reversed(topological(parents)):
        for parent in parents[name]:
            tails[parent] = max(tails[parent], tails[name] + seconds[name])
    return tails


def _some(values: Sequence[float]) -> Sequence[float]:
    if len(values) <= HEADS_MAX:
        return values
    return [values[index * len(values) // HEADS_MAX] for index in range(HEADS_MAX)]
