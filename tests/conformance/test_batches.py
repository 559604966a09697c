"""Items in, one answer per item out, in order: one bad item among a hundred does not touch the others."""

from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, World, part, settling
from perdure.domain.attempt import Hold, Progress, Renewal, Report
from perdure.domain.states import Reason, TaskState
from perdure.errors import Invalid, LeaseLost, NotFound, PerdureError
from perdure.store.ledger import (
    CancelAnswer,
    Cancellation,
    JobSubmitted,
    Redrive,
    Reported,
    SettleAnswer,
    Submitted,
)

BAD = 37
"""Where the bad item stands among the hundred."""


def stranger(world: World) -> Hold:
    return Hold(ORGANIZATION, world.ids.new(), world.ids.new(), world.ids.token())


def only_the_bad_one(flags: list[bool]) -> bool:
    return flags == [n == BAD for n in range(100)]


async def test_one_refused_submit_among_a_hundred(world: World) -> None:
    tasks = [world.task() for _ in range(100)]
    tasks[BAD] = world.task(ttl_us=0)
    answers = await world.submit_all(tasks)
    assert only_the_bad_one([isinstance(each, Invalid) for each in answers])
    assert [each.id for each in answers if isinstance(each, Submitted)] == [
        task.id for n, task in enumerate(tasks) if n != BAD
    ]
    assert await world.views.task(ORGANIZATION, tasks[BAD].id) is None
    assert len(await world.claim(200)) == 99


async def test_one_conflicting_job_among_a_hundred(world: World) -> None:
    await world.submit_job({"a": []}, idempotency_key="k", request_hash="one")
    jobs = [world.job({"a": [], "b": ["a"]}) for _ in range(100)]
    jobs[BAD] = world.job({"a": [], "b": ["a"]}, idempotency_key="k", request_hash="two")
    answers = await world.ledger.submit_jobs(jobs)
    assert only_the_bad_one([isinstance(each, PerdureError) for each in answers])
    assert [each.id for each in answers if isinstance(each, JobSubmitted)] == [
        job.id for n, job in enumerate(jobs) if n != BAD
    ]
    assert await world.views.job(ORGANIZATION, jobs[BAD].id) is None


async def test_one_stale_renewal_among_a_hundred(world: World) -> None:
    await world.submit_all([world.task() for _ in range(99)])
    holds = [lease.hold for lease in await world.claim(99)]
    holds.insert(BAD, stranger(world))
    answers = await world.ledger.renew([Renewal(hold, True) for hold in holds])
    assert only_the_bad_one([each is None for each in answers])
    assert await world.state(holds[0].task_id) is TaskState.RUNNING


async def test_one_stale_report_among_a_hundred(world: World) -> None:
    await world.submit_all([world.task() for _ in range(99)])
    holds = [lease.hold for lease in await world.claim(99)]
    holds.insert(BAD, stranger(world))
    for given in ({"progress": Progress(1)}, {"part": part(1)}, {"checkpoint": "1"}, {"phase": "executing"}):
        answers = await world.ledger.report([Report(hold, **given) for hold in holds])  # type: ignore[arg-type]
        assert only_the_bad_one([isinstance(each, LeaseLost) for each in answers])
        assert all(isinstance(each, Reported) for n, each in enumerate(answers) if n != BAD)


async def test_one_stale_settle_among_a_hundred(world: World) -> None:
    await world.submit_all([world.task() for _ in range(99)])
    holds = [lease.hold for lease in await world.claim(99)]
    holds.insert(BAD, stranger(world))
    answers = await world.ledger.settle([settling(hold, DONE) for hold in holds])
    assert only_the_bad_one([each.answer is SettleAnswer.LEASE_LOST for each in answers])
    overview = await world.views.overview(ORGANIZATION)
    assert {(row.state, row.tasks) for row in overview.counts if row.tasks} == {(TaskState.SUCCEEDED, 99)}


async def test_one_unknown_attempt_among_a_hundred_facts(world: World) -> None:
    await world.submit_all([world.task() for _ in range(99)])
    holds = [lease.hold for lease in await world.claim(99)]
    holds.insert(BAD, stranger(world))
    assert only_the_bad_one([each is None for each in await world.ledger.facts(holds)])


async def test_one_unknown_task_among_a_hundred_cancels(world: World) -> None:
    tasks = [world.task() for _ in range(100)]
    await world.submit_all([task for n, task in enumerate(tasks) if n != BAD])
    answers = await world.ledger.cancel(
        [Cancellation(ORGANIZATION, task.id, "bob", Reason.USER, None, None, 1) for task in tasks]
    )
    assert only_the_bad_one([each.answer is CancelAnswer.NOT_FOUND for each in answers])
    assert all(each.answer is CancelAnswer.CANCELLED for n, each in enumerate(answers) if n != BAD)


async def test_one_unknown_task_among_a_hundred_redrives(world: World) -> None:
    await world.submit_all([world.task() for _ in range(99)])
    leases = await world.claim(99)
    await world.finish(*leases, settlement=FAILED)
    ids = [lease.hold.task_id for lease in leases]
    ids.insert(BAD, world.ids.new())
    answers = await world.ledger.redrive([Redrive(ORGANIZATION, each, "bob") for each in ids])
    assert only_the_bad_one([isinstance(each, NotFound) for each in answers])
    assert all(each is TaskState.QUEUED for n, each in enumerate(answers) if n != BAD)


async def test_one_that_is_no_dead_letter_among_a_hundred(world: World) -> None:
    await world.submit_all([world.task() for _ in range(99)])
    leases = await world.claim(99)
    await world.finish(*leases, settlement=FAILED)
    ids = [lease.hold.task_id for lease in leases]
    ids.insert(BAD, await world.submit())
    assert only_the_bad_one([not each for each in await world.ledger.discard(ORGANIZATION, ids, "bob")])
    assert only_the_bad_one([not each for each in await world.ledger.purge(ORGANIZATION, ids, "bob")])
    assert await world.views.task(ORGANIZATION, ids[0]) is None
    assert await world.state(ids[BAD]) is TaskState.QUEUED


async def test_the_same_task_twice_in_one_call_is_answered_twice(world: World) -> None:
    task_id = await world.submit()
    request = Cancellation(ORGANIZATION, task_id, "bob", Reason.USER, None, None, 1)
    answers = await world.ledger.cancel([request, request])
    assert [each.answer for each in answers] == [CancelAnswer.CANCELLED, CancelAnswer.ALREADY]
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    again = await world.ledger.redrive([Redrive(ORGANIZATION, lease.hold.task_id, "bob")] * 2)
    assert again[0] is TaskState.QUEUED
    assert isinstance(again[1], PerdureError)


async def test_an_empty_call_has_an_empty_answer_and_changes_nothing(world: World) -> None:
    await world.submit(delay=HOUR)
    with world.unchanged():
        assert await world.ledger.submit([]) == []
        assert await world.ledger.submit_jobs([]) == []
        assert await world.claim(0) == []
        assert await world.ledger.renew([]) == []
        assert await world.ledger.report([]) == []
        assert await world.ledger.facts([]) == []
        assert await world.ledger.settle([]) == []
        assert await world.ledger.cancel([]) == []
        assert await world.ledger.redrive([]) == []
        assert await world.ledger.discard(ORGANIZATION, [], "bob") == []
        assert await world.ledger.purge(ORGANIZATION, [], "bob") == []
