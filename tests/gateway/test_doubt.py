"""What requests are refused with puts the store in doubt until a proof that comes after it."""

import asyncio
from typing import Any

import pytest

from gateway.asking import Asker
from perdure.errors import PerdureError, StoreBusy, StoreFailed, StoreFull, StoreReadOnly
from perdure.gateway.readiness import CHECK_SECONDS, HELD_US, Readiness
from perdure.testing import VirtualClock


class Disk:
    """A store that takes small writes, and new work only when it is well."""

    def __init__(self) -> None:
        self.fault: PerdureError | None = None
        self.known = True
        self.proofs = 0
        self.refuses_meanwhile: Readiness | None = None

    async def small_write(self) -> None: ...

    async def prove(self) -> bool:
        self.proofs += 1
        if self.refuses_meanwhile is not None:
            self.refuses_meanwhile.refused("writes", StoreFull("meanwhile"))
        if self.fault is not None:
            raise self.fault
        return self.known


def over(disk: Disk, clock: VirtualClock) -> Readiness:
    return Readiness({"writes": disk.small_write}, clock, {"writes": disk.prove})


@pytest.mark.parametrize("error", [StoreFull("full"), StoreReadOnly("read only"), StoreFailed("I/O error")])
async def test_a_refusal_counts_until_a_later_proof(error: PerdureError):
    disk = Disk()
    readiness = over(disk, VirtualClock())
    await readiness.probing["writes"].ask()
    assert (readiness.ready, disk.proofs) == (True, 0)
    disk.fault = error
    readiness.refused("writes", error)
    for proofs in (1, 2, 3):
        await readiness.probing["writes"].ask()
        assert (readiness.checks()["writes"], disk.proofs) == (error.code, proofs)
    disk.fault = None
    await readiness.probing["writes"].ask()
    assert readiness.ready
    await readiness.probing["writes"].ask()
    assert disk.proofs == 4, "what is proven is not proven again"


async def test_a_refusal_that_the_proof_contradicts_changes_nothing():
    disk = Disk()
    readiness = over(disk, VirtualClock())
    await readiness.probing["writes"].ask()
    for _ in range(3):
        readiness.refused("writes", StoreFull("too large for what is left"))
        assert readiness.ready
        await readiness.probing["writes"].ask()
        assert readiness.ready
    assert disk.proofs == 3


async def test_a_refusal_while_the_proof_is_sought_asks_for_another():
    disk = Disk()
    readiness = over(disk, VirtualClock())
    readiness.refused("writes", StoreFull("full"))
    disk.refuses_meanwhile = readiness
    await readiness.probing["writes"].ask()
    disk.refuses_meanwhile = None
    await readiness.probing["writes"].ask()
    assert disk.proofs == 2


async def test_what_says_nothing_of_other_work_asks_for_no_proof():
    disk = Disk()
    readiness = over(disk, VirtualClock())
    readiness.refused("writes", StoreBusy("many wait"))
    readiness.refused("writes", ValueError("a defect"))
    await readiness.probing["writes"].ask()
    assert disk.proofs == 0


async def test_a_refusal_has_the_store_asked_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(CHECK_SECONDS, "writes", 3600.0)
    disk = Disk()
    readiness = over(disk, VirtualClock())
    readiness.start()
    try:
        async with asyncio.timeout(10):
            while not readiness.ready:
                await asyncio.sleep(0.01)
            disk.fault = StoreFull("full")
            readiness.refused("writes", disk.fault)
            while readiness.ready:
                await asyncio.sleep(0.01)
    finally:
        await readiness.stop()


async def test_without_a_proof_the_second_refusal_in_seconds_counts_for_seconds():
    disk, clock = Disk(), VirtualClock()
    disk.known = False
    readiness = over(disk, clock)
    for wait_us, ready in ((0, True), (HELD_US + 1, True), (1_000_000, False)):
        clock.move(wait_us)
        readiness.refused("writes", StoreFull("full"))
        await readiness.probing["writes"].ask()
        assert readiness.ready is ready
    assert readiness.checks()["writes"] == "store_full"
    clock.move(HELD_US)
    await readiness.probing["writes"].ask()
    assert readiness.ready


async def test_a_refusal_of_one_item_of_a_list_counts_as_any(asker: Asker, monkeypatch: pytest.MonkeyPatch):
    heard: list[Exception] = []
    monkeypatch.setattr(asker.gateway.readiness, "refused", lambda what, error: heard.append(error))
    operations = asker.gateway._paths.find("POST", "/v1/tasks").target.handler.__self__._operations
    submit = operations.submit

    async def full_for_the_second(requests: Any, by: Any) -> Any:
        [stored, _] = await submit(requests, by)
        return [stored, StoreFull("full")]

    monkeypatch.setattr(operations, "submit", full_for_the_second)
    answer = await asker.ask("POST", "/v1/tasks", [{"kind": "k"}, {"kind": "k"}])
    assert answer.status == 207
    assert [type(each) for each in heard] == [StoreFull]
