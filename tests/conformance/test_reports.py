"""What a handler tells while it runs: progress, phases, checkpoints and pieces of its result."""

import hashlib

import pytest

from conformance.making import DONE, FAILED, ORGANIZATION, World, part, retry_in
from perdure.domain.attempt import PHASES, Progress, Report
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import Conflict, LeaseLost, PerdureError
from perdure.store.ledger import Reported
from perdure.store.views import PartView

TAKEN = Reported(False, None)
KNOWN = Reported(True, None)


async def pieces(world: World, task_id: str) -> list[PartView]:
    return await world.views.parts(ORGANIZATION, task_id)


@pytest.mark.parametrize(
    "given", [{"progress": Progress(1)}, {"phase": "planning"}, {"part": part(1)}, {"checkpoint": "1"}, {}]
)
async def test_any_report_says_that_the_handler_began(world: World, given: dict[str, object]) -> None:
    lease = await world.lease()
    world.advance(3)
    assert await world.report(lease, **given) == TAKEN
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.started_us) == (TaskState.RUNNING, await world.now_us())


async def test_a_later_progress_replaces_an_earlier_one(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, progress=Progress(1, 10, 1, 0))
    await world.report(lease, progress=Progress(5, 10, 3, 2))
    progress = (await world.look(lease.hold.task_id)).progress
    assert progress == {"done": 5, "total": 10, "succeeded": 3, "failed": 2}


async def test_a_phase_does_not_wipe_the_progress_nor_the_other_way_round(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, progress=Progress(1, 2))
    await world.report(lease, phase="executing")
    await world.report(lease, progress=Progress(2, 2))
    task = await world.look(lease.hold.task_id)
    assert task.phase == "executing"
    assert task.progress is not None
    assert task.progress["done"] == 2


async def test_phases_are_in_the_history(world: World) -> None:
    lease = await world.lease()
    for phase in PHASES:
        world.advance(1)
        await world.report(lease, phase=phase)
    events = [each for each in await world.views.events(ORGANIZATION, lease.hold.task_id) if each.type == "phase"]
    assert [each.data["phase"] for each in events] == list(PHASES)


async def test_several_reports_of_one_attempt_in_one_call_are_taken_in_order(world: World) -> None:
    lease = await world.lease()
    answers = await world.ledger.report(
        [
            Report(lease.hold, part=part(1, b'"a"')),
            Report(lease.hold, part=part(2, b'"b"')),
            Report(lease.hold, part=part(2, b'"b"')),
            Report(lease.hold, part=part(3, b'"c"', final=True)),
            Report(lease.hold, progress=Progress(3)),
        ]
    )
    assert answers == [TAKEN, TAKEN, KNOWN, TAKEN, TAKEN]
    assert [each.data.data for each in await pieces(world, lease.hold.task_id)] == [b'"a"', b'"b"', b'"c"']


# Checkpoints


async def test_a_checkpoint_is_kept_across_the_attempts_of_a_generation(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, checkpoint='{"at":1}')
    await world.report(lease, checkpoint='{"at":2}')
    await world.settle(lease, retry_in(0))
    again = await world.claim_one()
    assert again.checkpoint == '{"at":2}'
    world.advance(60)
    await world.sweep()
    assert (await world.claim_one()).checkpoint == '{"at":2}'


async def test_a_redrive_begins_without_a_checkpoint(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, checkpoint='{"at":1}')
    await world.finish(lease, settlement=FAILED)
    await world.redrive(lease.hold.task_id)
    assert (await world.claim_one()).checkpoint is None


# Pieces of a result


async def test_pieces_come_in_sequence_without_a_gap(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    with world.unchanged():
        assert isinstance(await world.report(lease, part=part(2)), PerdureError)
    assert await world.report(lease, part=part(1)) == TAKEN
    with world.unchanged():
        assert isinstance(await world.report(lease, part=part(3)), PerdureError)
    assert await world.report(lease, part=part(2)) == TAKEN


async def test_nothing_follows_a_final_piece(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, final=True))
    with world.unchanged():
        assert isinstance(await world.report(lease, part=part(2)), PerdureError)
        assert await world.report(lease, part=part(1, final=True)) == KNOWN


async def test_a_sequence_that_is_taken_by_another_key_is_refused(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, key="a"))
    with world.unchanged():
        assert isinstance(await world.report(lease, part=part(1, key="b")), PerdureError)


async def test_the_same_named_piece_of_a_retry_is_acknowledged_and_stored_once(world: World) -> None:
    lease = await world.lease()
    assert await world.report(lease, part=part(1, b'"same"', key="row-1")) == TAKEN
    await world.settle(lease, retry_in(0))
    again = await world.claim_one()
    assert await world.report(again, part=part(1, b'"same"', key="row-1")) == KNOWN
    assert await world.report(again, part=part(2, b'"more"', key="row-2")) == TAKEN
    assert len([each for each in await pieces(world, lease.hold.task_id) if each.key == "row-1"]) == 1


async def test_another_content_under_a_named_key_is_a_conflict_for_a_retry_too(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, b'"same"', key="row-1"))
    await world.settle(lease, retry_in(0))
    again = await world.claim_one()
    await world.start(again)
    with world.unchanged():
        assert isinstance(await world.report(again, part=part(1, b'"other"', key="row-1")), Conflict)


async def test_an_unnamed_piece_belongs_to_its_attempt(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, b'"first"'))
    await world.settle(lease, retry_in(0))
    again = await world.claim_one()
    assert await world.report(again, part=part(1, b'"second"', final=True)) == TAKEN
    await world.finish(again)
    views = await pieces(world, lease.hold.task_id)
    assert [(each.data.data, each.superseded) for each in views] == [(b'"first"', True), (b'"second"', False)]


async def test_a_piece_of_bytes_comes_back_as_it_was(world: World) -> None:
    lease = await world.lease()
    raw = bytes(range(256))
    piece = part(1)._replace(data=Body(raw, "bytes"), sha256=hashlib.sha256(raw).hexdigest())
    await world.report(lease, part=piece)
    (view,) = await pieces(world, lease.hold.task_id)
    assert view.data == Body(raw, "bytes")
    assert view.sha256 == piece.sha256


async def test_a_result_of_another_encoding_comes_back_as_it_was(world: World) -> None:
    lease = await world.lease()
    raw = bytes(range(256))
    await world.settle(lease, Settlement.succeeded(Body(raw, "pickle5")))
    assert (await world.look(lease.hold.task_id)).result == Body(raw, "pickle5")


async def test_pieces_and_progress_survive_the_end(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, final=True), progress=Progress(1, 1))
    await world.finish(lease, settlement=DONE)
    task = await world.look(lease.hold.task_id)
    assert task.summary == "all done"
    assert task.progress is not None
    assert len(await pieces(world, lease.hold.task_id)) == 1


async def test_a_report_refused_for_its_piece_stores_nothing_else_of_it(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    with world.unchanged():
        answer = await world.report(lease, part=part(5), progress=Progress(9), checkpoint='{"x":1}', phase="executing")
        assert isinstance(answer, PerdureError)
        assert not isinstance(answer, LeaseLost)
