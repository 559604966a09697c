"""A claim whose answer is lost is asked again with the same ids, so that nothing is leased to nobody."""

import asyncio

import pytest

from engine.making import Bench
from perdure.ambient import Ids
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.engine.claim import UNANSWERED_MAX, Claim
from perdure.errors import Invalid, StoreBusy
from perdure.store.ledger import ClaimRequest, Ledger


class LosesAnswers:
    """Passes claims on, and loses as many answers as it is told to."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self.requests: list[ClaimRequest] = []
        self.to_lose = 0

    async def claim(self, request: ClaimRequest) -> list[Lease]:
        self.requests.append(request)
        leases = await self._ledger.claim(request) if self._ledger is not None else []
        if self.to_lose:
            self.to_lose -= 1
            raise StoreBusy("the answer is lost")
        return leases


async def test_the_same_leases_come_back_after_a_lost_answer(bench: Bench) -> None:
    await bench.worker()
    task_ids = [await bench.submit(payload=n) for n in range(3)]
    ledger = LosesAnswers(bench.store.ledger)
    claim = Claim(ledger, bench.ids)  # type: ignore[arg-type]
    ledger.to_lose = 1
    with pytest.raises(StoreBusy):
        await claim("w", 2)
    leases = await claim("w", 2)
    assert [lease.hold.task_id for lease in leases] == task_ids[:2]
    assert ledger.requests[0] == ledger.requests[1]
    (rest,) = await claim("w", 2)
    assert rest.hold.task_id == task_ids[2]


async def test_a_claim_that_was_cancelled_is_asked_again_too(bench: Bench) -> None:
    await bench.worker()
    task_id = await bench.submit()
    ledger = LosesAnswers(bench.store.ledger)
    claim = Claim(ledger, bench.ids)  # type: ignore[arg-type]

    async def taken_then_cancelled(request: ClaimRequest) -> list[Lease]:
        await bench.store.ledger.claim(request)
        raise asyncio.CancelledError

    ledger.claim = taken_then_cancelled  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await claim("w", 1)
    del ledger.claim
    (lease,) = await claim("w", 1)
    assert lease.hold.task_id == task_id


async def test_workers_do_not_get_each_others_leases(bench: Bench) -> None:
    ledger = LosesAnswers(None)
    claim = Claim(ledger, bench.ids)  # type: ignore[arg-type]
    ledger.to_lose = 1
    with pytest.raises(StoreBusy):
        await claim("one", 1)
    await claim("two", 1)
    assert ledger.requests[0].leases != ledger.requests[1].leases


async def test_a_worker_that_left_is_forgotten(bench: Bench) -> None:
    ledger = LosesAnswers(None)
    claim = Claim(ledger, bench.ids)  # type: ignore[arg-type]
    ledger.to_lose = 1
    with pytest.raises(StoreBusy):
        await claim("w", 1)
    claim.forget("w")
    await claim("w", 1)
    assert ledger.requests[0].leases != ledger.requests[1].leases


async def test_what_is_remembered_of_lost_answers_is_bounded(bench: Bench) -> None:
    ledger = LosesAnswers(None)
    claim = Claim(ledger, bench.ids)  # type: ignore[arg-type]

    async def lose_one() -> None:
        with pytest.raises(StoreBusy):
            await claim("w", 1)

    ledger.to_lose = 3 * UNANSWERED_MAX
    await asyncio.gather(*(lose_one() for _ in range(3 * UNANSWERED_MAX)))
    assert len(claim._unanswered["w"]) <= UNANSWERED_MAX


async def test_a_claim_is_bounded(bench: Bench) -> None:
    ledger = LosesAnswers(None)
    claim = Claim(ledger, Ids(bench.clock))  # type: ignore[arg-type]
    await claim("w", 10**9)
    assert len(ledger.requests[0].leases) == limits.CLAIM_MAX_TASKS
    assert await claim("w", 0) == []
    assert await claim("w", -5) == []
    assert len(ledger.requests) == 1
    with pytest.raises(Invalid):
        await claim("w", 1.5)  # type: ignore[arg-type]
