"""Short ways to add tasks to the job of a running attempt."""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.making import Family, World
from perdure.domain.attempt import Hold, Lease
from perdure.errors import PerdureError
from perdure.store.job_ledger import Grown, Growth, Link


def growth(
    world: World,
    lease: Lease | Hold,
    graph: Mapping[str, Sequence[str]],
    *,
    before: Mapping[str, Sequence[str]] | None = None,
    edges: Mapping[tuple[str, str], str] | None = None,
    tasks: Mapping[str, Mapping[str, Any]] | None = None,
) -> Growth:
    """A growth from `{name: [parents]}`, in order; `before` maps new names to those that shall wait for them too."""
    hold = lease.hold if isinstance(lease, Lease) else lease
    said: dict[tuple[str, str], Any] = dict(edges or {})
    links = [
        Link(parent, child, said.get((parent, child), "fail")) for child, above in graph.items() for parent in above
    ]
    onward = [Link(name, each, "fail") for name, names in (before or {}).items() for each in names]
    made = tuple(
        world.task(
            name=name,
            waits=len(above),
            **{"request_hash": f"{name} after {','.join(above)}", **(tasks or {}).get(name, {})},
        )
        for name, above in graph.items()
    )
    return Growth(hold, made, (*links, *onward))


async def grow(
    world: World, lease: Lease | Hold, graph: Mapping[str, Sequence[str]], **given: Any
) -> Grown | PerdureError:
    """Add tasks in one call."""
    (answer,) = await world.ledger.grow([growth(world, lease, graph, **given)])
    return answer


async def grown(world: World, family: Family, lease: Lease, graph: Mapping[str, Sequence[str]], **given: Any) -> Grown:
    """Add tasks, which must be taken; the family knows them then."""
    answer = await grow(world, lease, graph, **given)
    assert isinstance(answer, Grown), answer
    family.ids.update(answer.task_ids)
    family.names.update({task: name for name, task in answer.task_ids.items()})
    return answer
