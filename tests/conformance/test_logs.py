"""What handlers log: kept with the task, in order, within bounds, taken from holders only."""

import pytest

from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, World, part, retry_in
from perdure.domain.attempt import Lease, LogLine, Progress, Report
from perdure.domain.limits import LOG_LINE_MAX_BYTES, LOG_MAX_BYTES, SECOND_US
from perdure.domain.retention import Retention
from perdure.domain.states import TaskState
from perdure.errors import Conflict, Invalid, LeaseLost, Malformed, NotFound, TooLarge
from perdure.store.ledger import Reported
from perdure.store.views import LogPage

TAKEN = Reported(False, None)


def line(sequence: int, message: str = "", *, ago: float = 0.0, level: str = "info", dropped: int = 0) -> LogLine:
    return LogLine(sequence, level, message or f"line {sequence}", round(ago * SECOND_US), dropped)


async def logged(world: World, task_id: str, limit: int = 100, cursor: str | None = None) -> LogPage:
    return await world.views.logs(ORGANIZATION, task_id, limit, cursor)


async def messages(world: World, task_id: str) -> list[str]:
    return [each.message for each in (await logged(world, task_id)).lines]


async def test_lines_are_kept_in_order_with_instant_level_and_what_is_missing(world: World) -> None:
    lease = await world.lease()
    world.advance(10)
    now_us = await world.now_us()
    said = (line(1, "é\n\x1b[31m", ago=2), line(2, level="error", ago=1, dropped=7))
    assert await world.report(lease, logs=said) == TAKEN
    first, second = (await logged(world, lease.hold.task_id)).lines
    assert (first.attempt_id, first.level, first.message) == (lease.hold.attempt_id, "info", "é\n\x1b[31m")
    assert (first.at_us, first.dropped) == (now_us - 2 * SECOND_US, 0)
    assert (second.level, second.at_us, second.dropped) == ("error", now_us - SECOND_US, 7)


async def test_no_line_is_older_than_its_lease(world: World) -> None:
    lease = await world.lease()
    leased_us = await world.now_us()
    world.advance(1)
    await world.report(lease, logs=(line(1, ago=HOUR),))
    assert [each.at_us for each in (await logged(world, lease.hold.task_id)).lines] == [leased_us]


async def test_logs_say_that_the_handler_began(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, logs=(line(1),))
    assert (await world.look(lease.hold.task_id)).state is TaskState.RUNNING


async def test_lines_sent_again_are_there_once(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, logs=(line(1), line(2)))
    assert await world.report(lease, logs=(line(1), line(2), line(3))) == TAKEN
    answers = await world.ledger.report(
        [Report(lease.hold, logs=(line(3, "other"), line(4))), Report(lease.hold, logs=(line(4, "other"), line(5)))]
    )
    assert answers == [TAKEN, TAKEN]
    assert await messages(world, lease.hold.task_id) == [f"line {each}" for each in range(1, 6)]


async def test_attempts_count_their_lines_on_their_own_and_stand_one_after_the_other(world: World) -> None:
    first = await world.lease()
    await world.report(first, logs=(line(1, "a1"), line(2, "a2")))
    await world.finish(first, settlement=retry_in(0))
    second = await world.claim_one()
    await world.report(second, logs=(line(1, "b1"),))
    await world.finish(second)
    page = await logged(world, first.hold.task_id)
    assert [(each.attempt_id, each.message) for each in page.lines] == [
        (first.hold.attempt_id, "a1"),
        (first.hold.attempt_id, "a2"),
        (second.hold.attempt_id, "b1"),
    ]


async def test_logs_of_many_attempts_travel_in_one_call(world: World) -> None:
    leases = [await world.lease() for _ in range(3)]
    answers = await world.ledger.report([Report(lease.hold, logs=(line(1, lease.hold.task_id),)) for lease in leases])
    assert answers == [TAKEN] * 3
    for lease in leases:
        assert await messages(world, lease.hold.task_id) == [lease.hold.task_id]


# Bounds


async def test_what_goes_beyond_the_bytes_of_a_log_is_refused_and_changes_nothing(world: World) -> None:
    lease = await world.lease()
    full = LOG_MAX_BYTES // LOG_LINE_MAX_BYTES
    whole = tuple(line(each + 1, "é" * (LOG_LINE_MAX_BYTES // 2)) for each in range(full))
    assert await world.report(lease, logs=whole) == TAKEN
    with world.unchanged():
        assert isinstance(await world.report(lease, logs=(line(full + 1, "x"),)), TooLarge)
    assert await world.report(lease, logs=whole) == TAKEN


async def test_two_reports_of_one_call_share_the_room(world: World) -> None:
    lease = await world.lease()
    full = LOG_MAX_BYTES // LOG_LINE_MAX_BYTES
    whole = [line(each + 1, "x" * LOG_LINE_MAX_BYTES) for each in range(full)]
    answers = await world.ledger.report(
        [Report(lease.hold, logs=tuple(whole)), Report(lease.hold, logs=(line(full + 1),))]
    )
    assert answers[0] == TAKEN
    assert isinstance(answers[1], TooLarge)
    assert len((await logged(world, lease.hold.task_id)).lines) == full


async def test_each_attempt_has_its_own_room(world: World) -> None:
    leases = [await world.lease() for _ in range(2)]
    most = tuple(line(each + 1, "x" * LOG_LINE_MAX_BYTES) for each in range(20))
    for lease in leases:
        assert await world.report(lease, logs=most) == TAKEN
    more = [Report(lease.hold, logs=(line(21, "x" * LOG_LINE_MAX_BYTES),)) for lease in leases]
    assert await world.ledger.report(more) == [TAKEN, TAKEN]
    for lease in leases:
        assert len((await logged(world, lease.hold.task_id)).lines) == 21


async def test_logs_of_a_report_that_is_refused_are_not_kept(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, part=part(1, b'"a"', key="k"))
    with world.unchanged():
        assert isinstance(await world.report(lease, part=part(2, b'"b"', key="k"), logs=(line(1),)), Conflict)


# Who may


async def stale(world: World) -> Lease:
    """A lease that ran out, with its task claimed again."""
    lease = await world.lease()
    await world.report(lease, logs=(line(1, "in time"),))
    world.advance(HOUR)
    await world.sweep()
    await world.claim_one()
    return lease


async def test_lines_of_an_attempt_that_lost_its_lease_are_refused(world: World) -> None:
    lease = await stale(world)
    with world.unchanged():
        assert isinstance(await world.report(lease, logs=(line(2, "late"),)), LeaseLost)
    assert await messages(world, lease.hold.task_id) == ["in time"]


async def test_lines_after_the_end_are_refused(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease)
    with world.unchanged():
        assert isinstance(await world.report(lease, logs=(line(1, "late"),)), LeaseLost)


async def test_lines_with_another_token_are_refused(world: World) -> None:
    lease = await world.lease()
    assert isinstance(await world.report(lease.hold._replace(token="guessed"), logs=(line(1),)), LeaseLost)
    assert await messages(world, lease.hold.task_id) == []


async def test_a_handler_that_is_told_to_stop_may_still_say_how(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, logs=(line(1, "before"),))
    await world.cancel(lease.hold.task_id)
    answer = await world.report(lease, logs=(line(2, "stopping"),))
    assert isinstance(answer, Reported)
    assert answer.cancel_us is not None
    assert isinstance(await world.report(lease, progress=Progress(1), logs=(line(3),)), Conflict)
    await world.finish(lease)
    assert (await world.look(lease.hold.task_id)).state is TaskState.CANCELLED
    assert await messages(world, lease.hold.task_id) == ["before", "stopping"]


# Reading


async def test_a_log_is_read_page_by_page_and_on_from_its_end(world: World) -> None:
    lease = await world.lease()
    task_id = lease.hold.task_id
    assert await logged(world, task_id) == LogPage([], None, False)
    await world.report(lease, logs=tuple(line(each) for each in range(1, 6)))
    read: list[str] = []
    page = await logged(world, task_id, limit=2)
    while True:
        read += [each.message for each in page.lines]
        if not page.more:
            break
        page = await logged(world, task_id, 2, page.cursor)
    assert read == [f"line {each}" for each in range(1, 6)]
    end = page.cursor
    assert await logged(world, task_id, 2, end) == LogPage([], end, False)
    await world.report(lease, logs=(line(6),))
    assert [each.message for each in (await logged(world, task_id, 2, end)).lines] == ["line 6"]


async def test_cursors_of_other_logs_and_empty_pages_are_refused(world: World) -> None:
    lease, other = await world.lease(), await world.lease()
    await world.report(lease, logs=(line(1),))
    cursor = (await logged(world, lease.hold.task_id)).cursor
    with pytest.raises(Malformed):
        await logged(world, other.hold.task_id, 10, cursor)
    with pytest.raises(Invalid):
        await logged(world, lease.hold.task_id, 0)


async def test_the_log_of_another_organizations_task_is_not_there(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, logs=(line(1),))
    with pytest.raises(NotFound):
        await world.views.logs("other", lease.hold.task_id, 10)


# How long


async def test_logs_stay_through_a_redrive_and_go_with_their_task(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, logs=(line(1, "first life"),))
    await world.finish(lease, settlement=FAILED)
    await world.redrive(lease.hold.task_id)
    again = await world.claim_one()
    await world.report(again, logs=(line(1, "second life"),))
    assert await messages(world, lease.hold.task_id) == ["first life", "second life"]
    await world.finish(again, settlement=DONE)
    world.advance(2 * HOUR)
    await world.ledger.retain(Retention(HOUR * SECOND_US), 100)
    with pytest.raises(NotFound):
        await logged(world, lease.hold.task_id)
    assert world.snapshot()["logs"] == []
