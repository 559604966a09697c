"""Workers whose claims have ids of their own, as those have that reach a store through a gateway: the same request gets
the same leases, however often it is asked, and nothing is remembered where it arrives.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from perdure.ambient import Ids
from perdure.domain.attempt import Lease
from perdure.store.claims import nothing_stands_by
from perdure.store.ledger import Taker

UNANSWERED_MAX = 16

Asked = tuple[str, int]
"""The id of a request, and how many leases it asks for."""


class ByRequest:
    """An engine as one worker's source, with the memory of a client."""

    def __init__(self, engine: Any, ids: Ids) -> None:
        self._engine = engine
        self._ids = ids
        self._unanswered: deque[Asked] = deque(maxlen=UNANSWERED_MAX)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._engine, verb)

    async def claim(self, worker_id: str, count: int, *, wait: float = 0.0) -> list[Lease]:
        asked = self._unanswered.popleft() if self._unanswered else (self._ids.new(), count)
        try:
            leases: list[Lease] = await self._engine.claim(worker_id, asked[1], asked[0])
        except BaseException:
            self.ask_again(asked)
            raise
        return leases

    def stand_by(self, worker_id: str, count: int, taker: Taker) -> Callable[[], None]:
        if self._unanswered:
            return nothing_stands_by
        asked = (self._ids.new(), count)
        withdraw: Callable[[], None] = self._engine.stand_by(worker_id, count, _Asked(self, asked, taker), asked[0])
        return withdraw

    def ask_again(self, asked: Asked) -> None:
        """Its answer was lost."""
        self._unanswered.append(asked)


class _Asked:
    """Whoever stands by, and its request."""

    def __init__(self, source: ByRequest, asked: Asked, taker: Taker) -> None:
        self._source = source
        self._asked = asked
        self._taker = taker
        self.subscription = taker.subscription
        self.begun = taker.begun
        self.taken = taker.taken
        self.passed_by = taker.passed_by

    def failed(self) -> None:
        self._source.ask_again(self._asked)
        self._taker.failed()
