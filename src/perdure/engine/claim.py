"""Claim tasks for a worker. The ids of the attempts are made before the write, so that a lost answer can be asked for
again.
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

from perdure.ambient import Ids
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.errors import Invalid
from perdure.store.claims import nothing_stands_by
from perdure.store.ledger import ClaimRequest, Ledger, Taker

UNANSWERED_MAX = 16
"""How many unanswered claims of one worker are remembered; leases of older ones run out by themselves."""


class Claim:
    """Claims, and repeats a claim whose answer was lost with the same ids, so that the same leases come back."""

    def __init__(self, ledger: Ledger, ids: Ids, ageing_us: int = 0) -> None:
        self._ledger = ledger
        self._ids = ids
        self._ageing_us = ageing_us
        self._unanswered: dict[str, deque[list[tuple[str, str]]]] = {}
        self._spare: dict[str, list[tuple[str, str]]] = {}
        """Ids of claims that stood by for nothing, by worker: the next one takes them."""

    async def __call__(self, worker_id: str, count: int, request_id: str | None = None) -> list[Lease]:
        """At most `count` leases, except after a lost answer: an earlier claim of the worker that had no answer comes
        back whole, in the place of a new one, however many leases it asked for. Call again for more.

        With a `request_id`, a secret of whoever asks, the same leases come whenever the same request is sent again,
        through any engine of the store; nothing is remembered here then.
        """
        if isinstance(count, bool) or not isinstance(count, int):
            raise Invalid("count must be a whole number", field="count")
        if count <= 0:
            return []
        if request_id is not None:
            wanted = derived_attempts(request_id, min(count, limits.CLAIM_MAX_TASKS))
            return await self._ledger.claim(ClaimRequest(worker_id, wanted, self._ageing_us))
        leases = self._take_unanswered(worker_id) or self._new(min(count, limits.CLAIM_MAX_TASKS))
        try:
            return await self._ledger.claim(ClaimRequest(worker_id, leases, self._ageing_us))
        except BaseException:
            # Whatever went wrong, a cancel included: the store may have leased them.
            self.ask_again(worker_id, leases)
            raise

    def stand_by(self, worker_id: str, count: int, taker: Taker, request: str | None = None) -> Callable[[], None]:
        """Let a claim travel with the commit that brings work to an idle worker. See `Ledger.stand_by`.

        With a `request` it brings the leases that a claim by it would.
        """
        if request is not None:
            wanted = derived_attempts(request, min(count, limits.CLAIM_MAX_TASKS))
            return self._ledger.stand_by(ClaimRequest(worker_id, wanted, self._ageing_us), taker)
        if worker_id in self._unanswered:
            return nothing_stands_by
        leases = self._spare.get(worker_id, [])
        leases = self._spare[worker_id] = leases[:count] + self._new(max(0, count - len(leases)))
        asked = ClaimRequest(worker_id, leases, self._ageing_us)
        return self._ledger.stand_by(asked, _Taker(self, worker_id, leases, taker))

    def spent(self, worker_id: str) -> None:
        """The ids of the claim that stood by are used."""
        self._spare.pop(worker_id, None)

    def ask_again(self, worker_id: str, leases: list[tuple[str, str]]) -> None:
        """The answer to these was lost: the next claim of the worker asks for them."""
        self._unanswered.setdefault(worker_id, deque(maxlen=UNANSWERED_MAX)).append(leases)

    def forget(self, worker_id: str) -> None:
        """The worker is gone: nobody will ask again."""
        self._unanswered.pop(worker_id, None)
        self._spare.pop(worker_id, None)

    def _new(self, count: int) -> list[tuple[str, str]]:
        return list(zip(self._ids.some(count), self._ids.tokens(count), strict=True))

    def _take_unanswered(self, worker_id: str) -> list[tuple[str, str]] | None:
        waiting = self._unanswered.get(worker_id)
        if not waiting:
            return None
        leases = waiting.popleft()
        if not waiting:
            del self._unanswered[worker_id]
        return leases


class _Taker:
    """Whoever stands by, and the ids that its claim uses up."""

    def __init__(self, claim: Claim, worker_id: str, leases: list[tuple[str, str]], taker: Taker) -> None:
        self._claim = claim
        self._worker_id = worker_id
        self._leases = leases
        self._taker = taker
        self.subscription = taker.subscription
        self.begun = taker.begun
        self.passed_by = taker.passed_by

    def taken(self, leases: list[Lease]) -> None:
        self._claim.spent(self._worker_id)
        self._taker.taken(leases)

    def failed(self) -> None:
        self._claim.spent(self._worker_id)
        self._claim.ask_again(self._worker_id, self._leases)
        self._taker.failed()


def derived_attempts(request_id: str, count: int) -> list[tuple[str, str]]:
    """Ids and tokens of attempts that follow from a request's id (a UUID), the same ones every time.

    The ids begin as the request's does, so that rows of one time lie together.
    """
    attempts: list[tuple[str, str]] = []
    head, secret = request_id[:14], request_id.encode()
    for number in range(count):
        digits = blake2b(b"%d" % number, key=secret, digest_size=26).hexdigest()
        attempts.append((f"{head}7{digits[:3]}-8{digits[3:6]}-{digits[6:18]}", digits[18:50]))
    return attempts
