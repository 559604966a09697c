"""An outcome becomes a settlement: success without reading, everything else by the facts, each of them once."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apsw
import msgspec
import pytest

from engine.making import BOOM, DONE, KIND, ME, Bench
from perdure.ambient import Chance
from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease, Part, Report
from perdure.domain.outcome import Failed, Failure, GaveUp, HandedBack, Snoozed, Stopped, Succeeded
from perdure.domain.retry import Retry
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body
from perdure.engine.bounded_text import shortened
from perdure.engine.parts_taken import PartsTaken
from perdure.engine.requests import TaskRequest
from perdure.engine.retry_policies import RetryPolicies
from perdure.engine.settle import Settle, digest
from perdure.errors import TooLarge
from perdure.store.ledger import Reported, SettleAnswer, Settled, Settling

FIXED = Retry(max_attempts=4, backoff="fixed", base=10.0, jitter=0.0)


def part(sequence: int, final: bool = False, key: str | None = None) -> Part:
    data = b'{"row": 1}'
    return Part(sequence, key or f"p{sequence}", key is not None, hashlib.sha256(data).hexdigest(), Body(data), final)


async def leased(bench: Bench, **fields: Any) -> Lease:
    await bench.worker()
    await bench.submit(**fields)
    return await bench.lease()


class CountingLedger:
    """Notes what is read and written, and takes everything."""

    def __init__(self) -> None:
        self.read: list[Hold] = []
        self.written: list[Settling] = []

    async def facts(self, holds: Sequence[Hold]) -> list[None]:
        self.read += holds
        return [None] * len(holds)

    async def settle(self, settlings: Sequence[Settling]) -> list[Settled]:
        self.written += settlings
        return [Settled(SettleAnswer.APPLIED, each.settlement.state) for each in settlings]


async def test_success_reads_nothing_and_failures_are_read_in_one_call() -> None:
    ledger = CountingLedger()
    settle = Settle(ledger, Chance(1), RetryPolicies(), PartsTaken())  # type: ignore[arg-type]
    holds = [Hold("default", f"t{n}", f"a{n}", "k") for n in range(4)]
    await settle([(holds[0], DONE), (holds[1], GaveUp("no"))])
    assert ledger.read == []
    await settle([(holds[0], DONE), (holds[1], BOOM), (holds[2], Snoozed(1)), (holds[3], HandedBack())])
    assert ledger.read == holds[1:]
    assert [each.hold for each in ledger.written[2:]] == holds


async def test_outcomes_that_are_alike_are_settled_alike_and_others_beside_them_as_they_are() -> None:
    one, same, other = (Succeeded(Body(data), ran_us=ran) for data, ran in ((b"1", 5), (b"1", 7), (b"2", 9)))
    too_large = Succeeded(Body(b"1" * (limits.RESULT_MAX_BYTES + 1)))
    summed = Succeeded(Body(b"1"), "s" * (limits.SUMMARY_MAX_BYTES + 1))
    outcomes = [one, same, other, HandedBack(), one, too_large, too_large, summed, summed, GaveUp("no"), GaveUp("no")]
    asked = [(Hold("default", f"task-{place}", "attempt", "token"), each) for place, each in enumerate(outcomes)]

    async def settled(*asked: tuple[Hold, Any]) -> list[Settling]:
        ledger = CountingLedger()
        await Settle(ledger, Chance(1), RetryPolicies(), PartsTaken())(asked)  # type: ignore[arg-type]
        return ledger.written

    assert await settled(*asked) == [alone for each in asked for alone in await settled(each)]


async def test_the_result_is_stored(bench: Bench) -> None:
    lease = await leased(bench)
    assert await bench.settle(lease, Succeeded(Body(b'{"x":1}'), "fine")) == Settled(
        SettleAnswer.APPLIED, TaskState.SUCCEEDED
    )
    view = await bench.view(lease.hold.task_id)
    assert (view.result, view.summary) == (Body(b'{"x":1}'), "fine")


async def test_the_tasks_own_retry_policy_decides_its_backoff(bench: Bench) -> None:
    lease = await leased(bench, retry=FIXED)
    before_us = await bench.store.ledger.now_us()
    assert (await bench.settle(lease, BOOM)).state == TaskState.RETRYING
    view = await bench.view(lease.hold.task_id)
    assert view.due_us is not None
    assert view.due_us - before_us == pytest.approx(10_000_000, abs=1_000)
    assert view.max_attempts == 4


async def test_the_same_outcome_again_is_a_repeat_even_where_chance_had_a_say(bench: Bench) -> None:
    lease = await leased(bench, retry=Retry(5, base=100.0, jitter=1.0))
    first = await bench.settle(lease, BOOM)
    assert await bench.settle(lease, BOOM) == Settled(SettleAnswer.REPLAYED, first.state)
    assert (await bench.settle(lease, DONE)).answer is SettleAnswer.LEASE_LOST


async def test_a_result_over_the_limit_is_a_permanent_failure(bench: Bench) -> None:
    lease = await leased(bench)
    settled = await bench.settle(lease, Succeeded(Body(b"1" * (limits.RESULT_MAX_BYTES + 1))))
    assert settled.state == TaskState.DEAD_LETTERED
    view = await bench.view(lease.hold.task_id)
    assert view.reason == Reason.BAD_RESULT
    assert view.last_error is not None
    assert "limit" in view.last_error.message


async def test_a_success_without_its_final_part_is_refused_with_the_missing_number(bench: Bench) -> None:
    lease = await leased(bench)
    answers = await bench.engine.report([Report(lease.hold, part=part(1)), Report(lease.hold, part=part(2))])
    assert answers == [Reported(False, None)] * 2
    assert (await bench.settle(lease, DONE)).state == TaskState.DEAD_LETTERED
    view = await bench.view(lease.hold.task_id)
    assert view.reason == Reason.BAD_RESULT
    assert view.last_error is not None
    assert "part 3" in view.last_error.message
    assert (await bench.settle(lease, DONE)).answer is SettleAnswer.REPLAYED


async def test_a_success_with_all_its_parts_is_a_success(bench: Bench) -> None:
    lease = await leased(bench)
    await bench.engine.report([Report(lease.hold, part=part(1)), Report(lease.hold, part=part(2, final=True))])
    assert (await bench.settle(lease, DONE)).state == TaskState.SUCCEEDED


def test_missing_parts_are_found_in_any_order() -> None:
    taken = PartsTaken()
    assert taken.missing("a") is None
    for sequence in (3, 1):
        taken.note("a", part(sequence, final=sequence == 3))
    assert taken.missing("a") == 2
    taken.note("a", part(2))
    taken.note("a", part(2))
    assert taken.missing("a") is None
    taken.forget("a")
    assert taken.missing("a") is None


@pytest.mark.parametrize(
    ("report", "field"),
    [
        ({"phase": "dreaming"}, "phase"),
        ({"part": part(0)}, "part.sequence"),
        ({"part": part(1, key="tab\t")}, "part.key"),
        ({"part": part(1)._replace(sha256="xyz")}, "part.sha256"),
        ({"part": part(1)._replace(data=Body(b"x" * (limits.PART_MAX_BYTES + 1)))}, "part"),
        ({"checkpoint": '"' + "x" * limits.CHECKPOINT_MAX_BYTES + '"'}, "checkpoint"),
    ],
)
async def test_a_bad_report_is_refused_beside_good_ones(bench: Bench, report: dict[str, Any], field: str) -> None:
    lease = await leased(bench)
    good, bad = Report(lease.hold, phase="planning"), Report(lease.hold, **report)
    first, refusal, last = await bench.engine.report([good, bad, good])
    assert first == last == Reported(False, None)
    assert refusal.fields["field"] == field  # type: ignore[union-attr]


async def test_a_huge_error_is_cut_to_what_may_be_stored(bench: Bench) -> None:
    lease = await leased(bench)
    error = Failure("E" * 50_000, "\x00\ud800" + "é" * 50_000, "first\n" + "line\n" * 50_000 + "last")
    await bench.settle(lease, Failed(error, permanent=True))
    stored = (await bench.view(lease.hold.task_id)).last_error
    assert stored is not None
    assert len((stored.type + stored.message + stored.traceback).encode()) <= limits.ERROR_MAX_BYTES
    assert stored.traceback.endswith("last")
    assert stored.message.startswith("??é")


def test_texts_are_cut_between_characters() -> None:
    assert shortened("abc", 3) == "abc"
    cut = shortened("é" * 100, 51)
    assert len(cut.encode()) <= 51
    assert cut.startswith("é")
    assert "�" not in cut


def test_outcomes_that_differ_have_digests_that_differ() -> None:
    error = Failure("A", "bc", "")
    outcomes = [
        DONE,
        Succeeded(DONE.result, "s"),
        Succeeded(Body(DONE.result.data, "other")),
        Failed(error),
        Failed(error, permanent=True),
        Failed(error, reason="timeout"),
        Failed(Failure("Ab", "c", "")),
        Snoozed(1),
        Snoozed(2),
        GaveUp("x"),
        HandedBack(),
    ]
    digests = {digest(each) for each in outcomes}
    assert len(digests) == len(outcomes)
    assert {len(each) for each in digests} == {32}


async def test_a_receipt_outlives_the_attempts_own_failure(bench: Bench) -> None:
    lease = await leased(bench)
    connection = _connect(bench)
    connection.execute("BEGIN IMMEDIATE")
    bench.engine.settle_within(connection, lease.hold, {"paid": True}, "by receipt")
    connection.execute("COMMIT")
    connection.close()
    assert (await bench.settle(lease, BOOM)).state == TaskState.SUCCEEDED
    view = await bench.view(lease.hold.task_id)
    assert view.result is not None
    assert msgspec.json.decode(view.result.data) == {"paid": True}


async def test_a_receipt_is_held_to_the_limit_of_results(bench: Bench) -> None:
    lease = await leased(bench)
    with pytest.raises(TooLarge):
        bench.engine.settle_within(None, lease.hold, "x" * limits.RESULT_MAX_BYTES)


async def test_tasks_submitted_inside_a_transaction_exist_once_it_commits(bench: Bench) -> None:
    connection = _connect(bench)
    connection.execute("BEGIN IMMEDIATE")
    good, bad = bench.engine.submit_within(
        connection, [TaskRequest(kind=KIND), TaskRequest(kind=KIND, priority=10)], ME
    )
    assert bad.fields["field"] == "priority"  # type: ignore[union-attr]
    assert await bench.engine.views.task(ME.organization, good.id) is None
    connection.execute("COMMIT")
    connection.close()
    await bench.run_duty("promote")
    assert (await bench.view(good.id)).state == TaskState.QUEUED


def _connect(bench: Bench) -> Any:
    return apsw.Connection(bench.store.path)


async def test_the_history_has_what_a_worker_says_of_its_handler(bench: Bench) -> None:
    await bench.worker()
    for _ in range(2):
        await bench.submit()
    quick, stopped = await bench.lease(), await bench.lease()
    await asyncio.sleep(10)
    await bench.settle(quick, replace(DONE, ran_us=4_000_000))
    await bench.engine.cancel([stopped.hold.task_id], ME)
    await asyncio.sleep(5)
    await bench.settle(stopped, Stopped(killed=True, ran_us=12_000_000, told_us=3_000_000))
    told: dict[str, dict[str, int]] = {}
    for lease in (quick, stopped):
        events = await bench.engine.views.events(ME.organization, lease.hold.task_id)
        began_us = events[0].at_us
        told[lease.hold.task_id] = {each.type: round((each.at_us - began_us) / 1_000_000) for each in events}
    assert told[quick.hold.task_id] == {
        "submitted": 0, "queued": 0, "leased": 0, "started": 6, "succeeded": 10, "ended": 10
    }  # fmt: skip
    assert told[stopped.hold.task_id] == {
        "submitted": 0, "queued": 0, "leased": 0, "started": 3, "cancel_requested": 10, "cancel_delivered": 12,
        "cancel_stopped": 15, "cancelled": 15, "ended": 15,
    }  # fmt: skip
