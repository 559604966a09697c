"""What the tests of jobs have in common: a diamond, claims by name, and counts of ends."""

from conformance.making import Family, World
from perdure.domain.attempt import Lease
from perdure.store.views import JobView

ENDS = ("succeeded", "partially_succeeded", "failed", "cancelled")
DIAMOND: dict[str, list[str]] = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


async def held(world: World, family: Family, *names: str) -> list[Lease]:
    """Claim exactly these tasks, in this order of the answer."""
    leases = {family.names[lease.hold.task_id]: lease for lease in await world.claim(len(names) + 1)}
    assert set(leases) == set(names)
    return [leases[name] for name in names]


def ends_of(job: JobView) -> dict[str, int]:
    """How its tasks ended, as far as any did; `failed` has the dead-lettered and the expired ones too."""
    return {state: count for state, count in job.counts.items() if count and state in ENDS}
