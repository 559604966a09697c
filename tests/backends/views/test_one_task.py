"""What can be read of one task."""

import pytest

from conformance.making import BOOM, DONE, ORGANIZATION, RESULT, World, part, retry_in, us
from perdure.domain.attempt import Progress
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.domain.task import Body
from perdure.errors import NotFound
from perdure.store.views import CancelView, ErrorView

OPTIONS = '{"labels":{"team":"blue","odd \\"key\\"":"x"},"metadata":{"deep":[1,{"n":9007199254740993}]}}'


async def test_a_queued_task_shows_its_specification(world: World) -> None:
    await world.submit(payload='"another"')
    submitted = world.task(
        priority=7, options=OPTIONS, idempotency_key="k", request_hash="h", initiator="carol", ttl=60
    )
    await world.submit_all([submitted])
    task = await world.look(submitted.id)
    now = await world.now_us()
    assert (task.kind, task.queue, task.priority, task.state) == ("work", "default", 7, TaskState.QUEUED)
    assert (task.attempt, task.losses, task.max_attempts, task.generation) == (1, 0, 3, 1)
    assert (task.principal, task.initiator, task.idempotency_key) == ("alice", "carol", "k")
    assert (task.created_us, task.expires_us) == (now, now + us(60))
    assert task.labels == {"team": "blue", 'odd "key"': "x"}
    assert task.metadata == {"deep": [1, {"n": 9007199254740993}]}
    assert task.payload == Body(b'{"n":1}')
    assert (task.result, task.reason, task.fence, task.worker, task.finished_us) == (None, None, None, None, None)


@pytest.mark.parametrize("metadata", ['"text"', "7", "[]", "false", "null"])
async def test_metadata_keeps_its_type(world: World, metadata: str) -> None:
    task_id = await world.submit(options=f'{{"metadata":{metadata}}}')
    expected = {'"text"': "text", "7": 7, "[]": [], "false": False, "null": None}[metadata]
    assert (await world.look(task_id)).metadata == expected


async def test_a_running_task_shows_its_attempt(world: World) -> None:
    lease = await world.lease()
    world.advance(1)
    await world.report(lease, progress=Progress(3, 10), phase="executing")
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.worker, task.fence) == (TaskState.RUNNING, "w", lease.fence)
    assert task.started_us == await world.now_us()
    assert task.lease_expires_us is not None
    assert task.deadline_us is not None
    assert (task.phase, task.progress) == ("executing", {"done": 3, "total": 10})


async def test_a_succeeded_task_shows_its_result_and_its_last_attempt(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    world.advance(2)
    await world.finish(lease)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.reason, task.result, task.summary) == (
        TaskState.SUCCEEDED,
        Reason.OK,
        RESULT,
        "all done",
    )
    assert (task.worker, task.fence, task.attempt) == ("w", lease.fence, 1)
    assert task.finished_us == await world.now_us() == (task.started_us or 0) + us(2)
    assert task.lease_expires_us is None


async def test_bodies_of_other_encodings_come_back_byte_for_byte(world: World) -> None:
    lease = await world.lease(payload="AP8Q", encoding="aes")
    await world.finish(lease, settlement=Settlement.succeeded(Body(b"\x00\xff", "zip")))
    task = await world.look(lease.hold.task_id)
    assert (task.payload, task.result) == (Body(b"\x00\xff\x10", "aes"), Body(b"\x00\xff", "zip"))
    (ended,) = await world.views.ended(ORGANIZATION, [lease.hold.task_id])
    assert ended.result == Body(b"\x00\xff", "zip")


async def test_a_retrying_task_shows_its_error_and_no_worker(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=retry_in(10))
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.attempt, task.worker) == (TaskState.RETRYING, 2, None)
    assert task.due_us == await world.now_us() + us(10)
    assert task.last_error == ErrorView(BOOM.type, BOOM.message, BOOM.traceback)


async def test_the_first_cancel_request_stays_with_the_task(world: World) -> None:
    lease = await world.lease()
    await world.cancel(lease.hold.task_id)
    requested = CancelView(await world.now_us(), "bob", Reason.USER, "not needed", "for my eyes")
    assert (await world.look(lease.hold.task_id)).cancel == requested
    world.advance(1)
    await world.finish(lease, settlement=Settlement.acknowledged())
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.cancel) == (TaskState.CANCELLED, requested)


async def test_attempts_are_shown_by_fence_with_the_live_one_last(world: World) -> None:
    first = await world.lease()
    await world.start(first)
    await world.finish(first, settlement=Settlement.handed_back())
    second = await world.claim_one()
    attempts = await world.views.attempts(ORGANIZATION, first.hold.task_id)
    assert [each.id for each in attempts] == [first.hold.attempt_id, second.hold.attempt_id]
    assert [each.state for each in attempts] == [AttemptState.RELEASED, AttemptState.LEASED]
    assert [each.attempt for each in attempts] == [1, 1]
    assert attempts[0].fence < attempts[1].fence
    assert attempts[0].ended_us is not None
    assert attempts[1].ended_us is None
    assert attempts[0].build == attempts[1].build == "build-1"


async def test_an_attempt_keeps_its_error(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=retry_in(1))
    (attempt,) = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert attempt.error == ErrorView(BOOM.type, BOOM.message, BOOM.traceback)
    assert attempt.reason == Reason.ERROR


async def test_the_attempt_of_a_cancelling_task_is_still_running(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.cancel(lease.hold.task_id)
    (attempt,) = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert attempt.state == AttemptState.RUNNING


async def test_parts_of_earlier_attempts_are_marked(world: World) -> None:
    first = await world.lease()
    await world.report(first, part=part(1))
    await world.report(first, part=part(2, b'"more"'))
    await world.finish(first, settlement=Settlement.handed_back())
    second = await world.claim_one()
    await world.report(second, part=part(1, b'"again"', final=True))
    shown = await world.views.parts(ORGANIZATION, first.hold.task_id)
    assert [(each.attempt_id, each.sequence, each.superseded) for each in shown] == [
        (first.hold.attempt_id, 1, True),
        (first.hold.attempt_id, 2, True),
        (second.hold.attempt_id, 1, False),
    ]
    assert [each.data.data for each in shown] == [b'"piece"', b'"more"', b'"again"']
    assert [each.final for each in shown] == [False, False, True]
    await world.finish(second, settlement=DONE)
    shown = await world.views.parts(ORGANIZATION, first.hold.task_id)
    assert [each.superseded for each in shown] == [True, True, False]


async def test_a_named_part_that_is_sent_again_counts_for_the_attempt_that_sent_it(world: World) -> None:
    first = await world.lease()
    await world.report(first, part=part(1, key="row-1"))
    await world.finish(first, settlement=Settlement.handed_back())
    second = await world.claim_one()
    (shown,) = await world.views.parts(ORGANIZATION, first.hold.task_id)
    assert shown.superseded
    await world.report(second, part=part(1, key="row-1"))
    (shown,) = await world.views.parts(ORGANIZATION, first.hold.task_id)
    assert (shown.key, shown.attempt_id, shown.superseded) == ("row-1", second.hold.attempt_id, False)


@pytest.mark.parametrize(
    "text", ['"\\u0000 \\ud83d\\ude00"', '"😀 é \\" \\\\"', " [1 ,\n 2e400]\t", "1e999", '{"a":{}}']
)
async def test_json_bodies_come_back_as_they_were_written(world: World, text: str) -> None:
    lease = await world.lease(payload=text)
    body = Body(text.encode())
    await world.finish(lease, settlement=Settlement.succeeded(body))
    task = await world.look(lease.hold.task_id)
    (ended,) = await world.views.ended(ORGANIZATION, [lease.hold.task_id])
    assert lease.payload == task.payload == task.result == ended.result == body


async def test_only_the_ended_ones_of_many_are_told_in_the_order_asked(world: World) -> None:
    leases = [await world.lease() for _ in range(3)]
    await world.finish(leases[0])
    await world.finish(leases[2], settlement=Settlement.failed(BOOM, Reason.PERMANENT, dead_letters=True))
    ids = [lease.hold.task_id for lease in leases]
    ended = await world.views.ended(ORGANIZATION, [ids[2], ids[1], world.ids.new(), ids[0]])
    assert [(each.id, each.state, each.reason) for each in ended] == [
        (ids[2], TaskState.DEAD_LETTERED, Reason.PERMANENT),
        (ids[0], TaskState.SUCCEEDED, Reason.OK),
    ]
    assert (ended[0].result, ended[0].error) == (None, ErrorView(BOOM.type, BOOM.message, BOOM.traceback))
    assert (ended[1].result, ended[1].error, ended[1].summary) == (RESULT, None, "all done")


async def test_more_ids_than_one_statement_answers_for(world: World) -> None:
    tasks = [world.task() for _ in range(1_003)]
    await world.submit_all(tasks)
    await world.finish(*await world.claim(600), *await world.claim(600))
    ids = [task.id for task in tasks]
    assert [each.id for each in await world.views.ended(ORGANIZATION, ids)] == ids
    assert await world.views.ended(ORGANIZATION, []) == []


async def test_nothing_of_another_organization_is_seen(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, final=True))
    await world.finish(lease)
    views, task_id = world.views, lease.hold.task_id
    assert await views.task("other", task_id) is None
    assert await views.ended("other", [task_id]) == []
    for view in (views.attempts, views.events, views.parts):
        with pytest.raises(NotFound) as caught:
            await view("other", task_id)
        assert (caught.value.what, caught.value.id) == ("task", task_id)
