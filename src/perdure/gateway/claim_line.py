"""Workers that wait for the same tasks, in the order in which the store is asked for them.

The claim of the first stands by meanwhile: a commit of the gateway's own loop that brings work takes it along
(`store/claims.py`). So a task that comes alone is leased as it is stored, with no hint between.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from perdure.domain.attempt import Lease
from perdure.store.claims import nothing_stands_by
from perdure.store.ledger import WorkerOrder
from perdure.store.wakeups import Subscription


class Wanted(NamedTuple):
    """One claim."""

    worker_id: str
    most: int
    """How many leases it takes."""
    request_id: str
    told: WorkerOrder | None = None
    """What the worker knows to be ordered: its claim waits no longer than it is true."""

    @property
    def request(self) -> tuple[str, str]:
        """What is the same when a worker sends its claim again."""
        return self.worker_id, self.request_id


class Place:
    """A worker in its line. `leases` is done when it was served, with none when it is to wait no more; the store was
    last asked for them at `asked`, or never since it stands here.
    """

    __slots__ = ("_line", "asked", "leases", "wanted")

    def __init__(self, wanted: Wanted, line: "Line") -> None:
        self.wanted = wanted
        loop = asyncio.get_running_loop()
        self.asked = loop.time()
        self.leases: asyncio.Future[list[Lease]] = loop.create_future()
        self._line = line

    @property
    def waits(self) -> bool:
        """Whether it is still to be served."""
        return not self.leases.done()

    def end(self, _: object = None) -> None:
        """It waits no more. What a claim that is under way gets for it is given back."""
        if self.waits:
            self.leases.set_result([])
        self._line.leave(self)


class Around(NamedTuple):
    """What lines are handed."""

    stand_by: Callable[[Wanted, "StandingClaim"], Callable[[], None]]
    may_work: Callable[[str], bool]
    """Whether a worker is known to be ordered to work."""
    told_alone: Callable[[], Subscription | None]
    """Where hints arrive, if they concern no other line."""
    served: Callable[[], None]
    """Called before a claim that stood by is answered."""
    spare: Callable[[Wanted, list[Lease]], None]
    """Takes what was leased for a claim that waits no more."""


class Line:
    """Belongs to one event loop."""

    def __init__(self, around: Around) -> None:
        self.places: deque[Place] = deque()
        self._around = around
        self._standing: StandingClaim | None = None
        self._held = False

    def __len__(self) -> int:
        """How many places it has; some may be left."""
        return len(self.places)

    def join(self, wanted: Wanted) -> Place:
        """Another one waits."""
        place = Place(wanted, self)
        self.places.append(place)
        self._stand()
        return place

    def leave(self, place: Place) -> None:
        """A place waits no more: the next one stands by."""
        if self._standing is not None and self._standing.place is place:
            self._withdraw()
            self._stand()

    def hold(self) -> None:
        """Nobody stands by until `let_go`: the store is asked for those who wait."""
        self._held = True
        self._withdraw()

    def let_go(self) -> None:
        """The first one stands by again."""
        self._held = False
        self._stand()

    def pass_by(self) -> None:
        """There was work, but not for who stood by: it is the next one's turn."""
        if len(self.places) > 1:
            self._withdraw()
            self.places.rotate(-1)
            self._stand()

    def _stand(self) -> None:
        while self.places and not self.places[0].waits:
            self.places.popleft()
        if self._standing is None and not self._held and self.places:
            first = self.places[0]
            if self._around.may_work(first.wanted.worker_id):
                self._standing = StandingClaim(first, self, self._around)

    def _withdraw(self) -> None:
        standing, self._standing = self._standing, None
        if standing is not None:
            standing.withdraw()


class StandingClaim:
    """The claim of a place, while it stands by. Meets `store.claims.Taker`."""

    def __init__(self, place: Place, line: Line, around: Around) -> None:
        self.place = place
        self._line = line
        self._around = around
        self._begun = place.asked
        self.withdraw: Callable[[], None] = nothing_stands_by
        self.withdraw = around.stand_by(place.wanted, self)

    @property
    def subscription(self) -> Subscription | None:
        """Where the gateway hears of work, unless others wait there who may have another sort of it."""
        return self._around.told_alone()

    def begun(self) -> None:
        """A commit begins that may take the claim along."""
        self._begun = asyncio.get_running_loop().time()

    def taken(self, leases: list[Lease]) -> None:
        """The commit has brought these."""
        place = self.place
        if place.waits:
            self._around.served()
            place.asked = self._begun
            place.leases.set_result(leases)
        else:
            self._around.spare(place.wanted, leases)
        self._line.leave(place)

    def passed_by(self) -> None:
        """The commit has brought work, but none for this claim."""
        self._line.pass_by()

    def failed(self) -> None:
        """It may have brought some: the same request asks for it, at the next hint or look."""
        self._line.leave(self.place)
