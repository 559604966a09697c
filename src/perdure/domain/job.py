"""The rules of DAGs: which are sound, in which order their tasks come, and what a failure means in them."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

from perdure.domain import limits
from perdure.domain.task import FailurePolicy
from perdure.errors import Invalid

SHOWN_NAMES = 8
"""How many names a message lists at most."""


def check_graph(parents: Mapping[str, Sequence[str]]) -> None:
    """Refuse what is not a DAG within the limits. `parents` maps each name to the names that it depends on.

    Raises `Invalid` with the names at fault in the message and in `names`.
    """
    _check_size(parents)
    for name, above in parents.items():
        _check_names(name, above, parents)
    _check_shape(parents)


def check_added(parents: Mapping[str, Sequence[str]], before: Mapping[str, Sequence[str]]) -> None:
    """Refuse what tasks that are added to a job cannot be, whatever the job is.

    `parents` and `before` map each of their names to those that it depends on, in the job or among them, and to those
    of the job that shall wait for it.

    Raises `Invalid` with the names at fault in the message and in `names`.
    """
    _check_size(parents)
    for name, above in parents.items():
        _check_itself(name, above)
        below = before.get(name, ())
        _check_itself(name, below, "before")
        new = sorted(each for each in below if each in parents)
        if new:
            raise Invalid(
                f"task {name!r} is to go before {new[0]!r}, which is new too: let {new[0]!r} depend on it instead",
                field="tasks",
                names=new,
            )
    _check_shape({name: [each for each in above if each in parents] for name, above in parents.items()})


def check_grown(
    job: Mapping[str, Sequence[str]], parents: Mapping[str, Sequence[str]], before: Mapping[str, Sequence[str]]
) -> None:
    """Refuse what a job cannot become: `job` maps the names that it has to those that they depend on.

    Raises `Invalid` with the names at fault in the message and in `names`.
    """
    whole: dict[str, Sequence[str]] = {**job, **parents}
    for name, below in before.items():
        for each in below:
            whole[each] = [*whole.get(each, ()), name]
    check_graph(whole)


def _check_shape(parents: Mapping[str, Sequence[str]]) -> None:
    order = topological(parents)
    if len(order) < len(parents):
        cycle = _find_cycle(parents, set(parents) - set(order))
        raise Invalid(
            f"the tasks depend on each other in a circle: {' -> '.join(shown_names(cycle))}",
            field="tasks",
            names=cycle,
        )
    depth = max(depths(parents, order).values(), default=0)
    if depth > limits.JOB_MAX_DEPTH:
        raise Invalid(f"the job is {depth} tasks deep, the limit is {limits.JOB_MAX_DEPTH}", field="tasks")


def _check_size(parents: Mapping[str, Sequence[str]]) -> None:
    if not parents:
        raise Invalid("a job needs at least one task", field="tasks")
    check_totals(len(parents), sum(map(len, parents.values())))
    children = Counter(name for above in parents.values() for name in above)
    for name, width in [*children.most_common(1), *_widest(parents)]:
        check_width(name, width)


def check_width(name: str, width: int) -> None:
    """Refuse more parents, or more children, than one task may have."""
    if width > limits.JOB_MAX_WIDTH:
        raise Invalid(
            f"task {name!r} has {width} dependencies on one side, the limit is {limits.JOB_MAX_WIDTH}",
            field="tasks",
            names=[name],
        )


def check_totals(tasks: int, edges: int) -> None:
    """Refuse a job of more tasks or dependencies than there may be."""
    if tasks > limits.JOB_MAX_TASKS:
        raise Invalid(f"a job has at most {limits.JOB_MAX_TASKS} tasks, not {tasks}", field="tasks")
    if edges > limits.JOB_MAX_EDGES:
        raise Invalid(f"a job has at most {limits.JOB_MAX_EDGES} dependencies, not {edges}", field="tasks")


def _widest(parents: Mapping[str, Sequence[str]]) -> list[tuple[str, int]]:
    name = max(parents, key=lambda each: len(parents[each]))
    return [(name, len(parents[name]))]


def _check_names(name: str, above: Sequence[str], parents: Mapping[str, Sequence[str]]) -> None:
    _check_itself(name, above)
    unknown = sorted({each for each in above if each not in parents})
    if unknown:
        raise Invalid(
            f"task {name!r} depends on {', '.join(map(repr, shown_names(unknown)))}, which the job does not have",
            field="tasks",
            names=unknown,
        )


def _check_itself(name: str, above: Sequence[str], said: str = "depends_on") -> None:
    if name in above:
        raise Invalid(f"task {name!r} depends on itself", field="tasks", names=[name])
    if len(set(above)) < len(above):
        twice = sorted(each for each, count in Counter(above).items() if count > 1)
        raise Invalid(f"task {name!r} names {twice[0]!r} twice in {said}", field="tasks", names=twice)


def check_names_differ(names: Iterable[str]) -> None:
    """Refuse two tasks of one name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise Invalid(
            f"two tasks of the job have the same name: {', '.join(map(repr, shown_names(twice)))}",
            field="tasks",
            names=twice,
        )


def topological(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """The names, each after all that it depends on; names on or behind a circle are left out."""
    children: dict[str, list[str]] = {}
    open_parents = {name: len(above) for name, above in parents.items()}
    for name, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(name)
    ready = deque(name for name, count in open_parents.items() if count == 0)
    order: list[str] = []
    while ready:
        name = ready.popleft()
        order.append(name)
        for child in children.get(name, ()):
            open_parents[child] -= 1
            if open_parents[child] == 0:
                ready.append(child)
    return order


def depths(parents: Mapping[str, Sequence[str]], order: Sequence[str]) -> dict[str, int]:
    """How many tasks lie on the longest path that ends with each task, itself included."""
    result: dict[str, int] = {}
    for name in order:
        result[name] = 1 + max((result[parent] for parent in parents[name]), default=0)
    return result


def critical_path(
    parents: Mapping[str, Sequence[str]], weights: Mapping[str, float], not_before: Mapping[str, float] | None = None
) -> tuple[float, list[str]]:
    """The heaviest path through the DAG: its weight, and its names from first to last.

    `not_before`: what cannot begin earlier, by name. A path begins with such a task where that is what it waits for.
    """
    finish: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for name in topological(parents):
        above = max(parents[name], key=lambda parent: finish[parent], default=None)
        start = finish[above] if above is not None else 0.0
        earliest = (not_before or {}).get(name, 0.0)
        before[name] = above if start >= earliest else None
        finish[name] = weights[name] + max(start, earliest)
    if not finish:
        return 0.0, []
    last: str | None = max(finish, key=lambda name: finish[name])
    total = finish[last] if last is not None else 0.0
    path: list[str] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return total, path[::-1]


def meaning_of_failure(policy: FailurePolicy, edge_policies: Iterable[FailurePolicy]) -> FailurePolicy:
    """What a task's failure means for its job, from the job's policy and those of the edges that leave the task."""
    policies = set(edge_policies) or {policy}
    if "cancel_job" in policies:
        return "cancel_job"
    return "continue" if "continue" in policies else "fail"


def _find_cycle(parents: Mapping[str, Sequence[str]], among: set[str]) -> list[str]:
    name = min(among)
    seen: dict[str, int] = {}
    path: list[str] = []
    while name not in seen:
        seen[name] = len(path)
        path.append(name)
        name = min(parent for parent in parents[name] if parent in among)
    return [*path[seen[name] :], name][::-1]


def shown_names(names: Sequence[str], most: int = SHOWN_NAMES) -> list[str]:
    """Names as messages and histories tell them: the first `most`, and how many more there are."""
    if len(names) <= most:
        return list(names)
    return [*names[:most], f"... {len(names) - most} more"]
