"""A submit that is alone commits by its own statement, on its caller's loop, and is answered whatever comes between."""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import task
from backends.postgres.opened import channels, end_sessions, one, opened, plain
from perdure.domain.limits import SECOND_US
from perdure.domain.states import TaskState
from perdure.errors import Misuse, Overloaded, PerdureError
from perdure.store.ledger import Submitted
from perdure.store.postgres import clock, submission
from perdure.store.postgres.session import Session
from perdure.store.postgres.store import PostgresStore
from perdure.store.postgres.wire import Answer, Query, Told, Wire

STORED = "SELECT string_agg(id, '' ORDER BY n) FROM perdure_tasks"
COUNTED = "SELECT sum(change)::bigint FROM perdure_count_changes WHERE state = 'queued'"
WAIT = 30


class Sent:
    """What was sent by itself, and what was told of it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.told: list[Answer | psycopg.Error] = []
        self.times = 0
        self.first = asyncio.Event()
        self.answered = threading.Event()
        self.session: Session | None = None
        send = Session.send

        def watched(session: Session, statement: Query, turn: Callable[[], str | None], told: Told) -> None:
            self.times += 1
            self.session = session
            self.first.set()

            def noted(answer: Answer | psycopg.Error) -> None:
                self.told.append(answer)
                self.answered.set()
                told(answer)

            send(session, statement, turn, noted)

        patch.setattr(Session, "send", watched)

    @property
    def written(self) -> list[bool]:
        """Whether each has written."""
        return [isinstance(each, Answer) and bool(each.rows and each.rows[0][0]) for each in self.told]


async def at_rest(store: PostgresStore) -> None:
    """Wait until all flushers sleep: what is submitted while its own is at work goes with it."""
    async with asyncio.timeout(WAIT):
        while any(each._thread and not each._backlog._idle for each in store.writer._flushers.values()):
            await asyncio.sleep(0.001)


async def submit(store: PostgresStore, id: str, **given: Any) -> Submitted | PerdureError:
    """Submit one task."""
    (answer,) = await store.ledger.submit([task(id, **given)])
    return answer


def told(id: str, replayed: bool = False) -> Submitted:
    """The answer for a task that is queued."""
    return Submitted(id, TaskState.QUEUED, replayed)


def check(url: str, ids: str) -> None:
    """These are stored, and each counts."""
    with plain(url) as other:
        assert (one(other, STORED), one(other, COUNTED)) == (ids, len(ids))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    # On a busy machine a round trip may leave the server's clock too uncertain for the way that is tried here.
    monkeypatch.setattr(clock, "UNSURE_US", WAIT * SECOND_US)
    return Sent(monkeypatch)


async def test_lone_submits_commit_by_their_own_statements(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        for id in "abcdef":
            assert await submit(store, id) == told(id)
            await at_rest(store)
        assert sent.written == [True] * 5, "all but the first, which asks for its lane"
        check(postgres_database, "abcdef")


async def test_what_one_turn_of_a_loop_sends_travels_together(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        assert await asyncio.gather(*(submit(store, id) for id in "bcd")) == [told(id) for id in "bcd"]
        assert sent.times == 0
        check(postgres_database, "abcd")


@pytest.mark.parametrize(
    "given", [{"delay_us": 5}, {"idempotency_key": "k", "request_hash": "h"}, {"payload": f'"{"x" * 9_000}"'}]
)
async def test_what_is_not_plain_or_long_takes_a_transaction(
    postgres_database: str, sent: Sent, given: dict[str, Any]
) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        assert isinstance(await submit(store, "b", **given), Submitted)
        assert sent.times == 0


async def test_what_cannot_be_sent_is_refused_as_by_any_other_way(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        with pytest.raises(PerdureError, match="NUL"):
            await submit(store, "b\x00")
        assert await submit(store, "c") == told("c")


async def test_a_task_that_exists_and_a_depth_are_left_to_a_transaction(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        assert await submit(store, "a") == told("a")
        await at_rest(store)
        assert await submit(store, "a") == told("a", replayed=True)
        assert sent.written == [False]
        assert await submit(store, "b") == told("b")
        assert sent.times == 1, "a refusal is not asked for again at once"
    async with opened(postgres_database) as store:
        await submit(store, "c")
        await store.definitions.put("default", "queue", "default", '{"depth":3}', "bob")
        await at_rest(store)
        assert isinstance(await submit(store, "d"), Overloaded)
        assert sent.written == [False, False]
    check(postgres_database, "abc")


async def test_nothing_is_written_where_nobody_would_wait_for_the_disk(postgres_database: str, sent: Sent) -> None:
    with plain(postgres_database) as other:
        database = f"ALTER DATABASE {other.info.dbname}"
        other.execute(f"{database} SET synchronous_commit = off".encode())
        try:
            async with opened(postgres_database) as store:
                assert await submit(store, "a") == told("a")
                assert await submit(store, "b") == told("b")
        finally:
            other.execute(f"{database} RESET synchronous_commit".encode())
    assert sent.written == [False]
    check(postgres_database, "ab")


async def test_nothing_is_written_at_an_instant_that_the_server_does_not_have(
    postgres_database: str, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        monkeypatch.setattr(submission, "LATE_US", -submission.EARLY_US)
        assert await submit(store, "b") == told("b")
        assert sent.written == [False]
    check(postgres_database, "ab")


async def test_a_session_that_was_ended_is_noticed_and_the_call_answered(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        assert end_sessions(postgres_database) >= 1
        assert await submit(store, "b") == told("b")
        assert sent.written == [False]
    check(postgres_database, "ab")


async def test_an_answer_that_is_lost_is_asked_for_again(
    postgres_database: str, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Wire.look

    def lose(wire: Wire) -> None:
        monkeypatch.setattr(Wire, "look", look)
        with plain(postgres_database) as other:
            end = time.monotonic() + WAIT
            while one(other, STORED) != "ab":
                assert time.monotonic() < end
        wire.close()

    async with opened(postgres_database) as store:
        await submit(store, "a")
        monkeypatch.setattr(Wire, "look", lose)
        assert await submit(store, "b") == told("b", replayed=True)
        assert sent.times == 1
    check(postgres_database, "ab")


async def test_a_lock_that_others_hold_is_waited_for_by_turns(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        with psycopg.connect(postgres_database) as other:
            other.execute("LOCK TABLE perdure_count_changes IN ACCESS EXCLUSIVE MODE")
            waiting = asyncio.ensure_future(submit(store, "b"))
            await sent.first.wait()
            # Reading goes on, and what gathers behind it is held up with it.
            assert await store.ledger.now_us() > 0
            later = asyncio.ensure_future(submit(store, "c"))
            assert await asyncio.to_thread(sent.answered.wait, WAIT)
            other.rollback()
        assert [*await asyncio.gather(waiting, later)] == [told("b"), told("c")]
    assert sent.written[0] is False


async def test_others_that_use_the_session_read_the_answer_first(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        waiting = asyncio.ensure_future(submit(store, "b"))
        await sent.first.wait()
        _, many = await asyncio.gather(waiting, store.ledger.submit([task("c"), task("d")]))
        assert [waiting.result(), *many] == [told(id) for id in "bcd"]
    check(postgres_database, "abcd")


async def test_a_caller_that_gives_up_changes_nothing(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        waiting = asyncio.ensure_future(submit(store, "b"))
        await sent.first.wait()
        waiting.cancel()
        assert await submit(store, "c") == told("c")
    check(postgres_database, "abc")


async def test_what_is_under_way_when_the_store_closes_is_answered(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        waiting = asyncio.ensure_future(submit(store, "b"))
        await sent.first.wait()
    assert await waiting == told("b")
    with pytest.raises(Misuse):
        await submit(store, "c")
    check(postgres_database, "ab")


async def test_a_loop_that_ends_first_holds_up_nobody(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")

        async def leave() -> None:
            sent.first = asyncio.Event()
            waiting = asyncio.ensure_future(submit(store, "b"))
            await sent.first.wait()
            waiting.cancel()

        other = threading.Thread(target=asyncio.run, args=(leave(),))
        other.start()
        await asyncio.to_thread(other.join, WAIT)
        assert not other.is_alive()
        for id in "cde":
            assert await asyncio.wait_for(submit(store, id), WAIT) == told(id)
    check(postgres_database, "abcde")


class Interrupted(BaseException):
    """As a signal handler raises it."""


OUT_OF_DESCRIPTORS = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize(
    ("owner", "name", "error", "goes_on"),
    [
        (os, "dup", OUT_OF_DESCRIPTORS, True),
        (asyncio.SelectorEventLoop, "add_reader", OUT_OF_DESCRIPTORS, True),
        (Session, "send", Interrupted(), True),
        (Wire, "_send", Interrupted(), False),
    ],
)
async def test_what_is_kept_from_being_sent_the_thread_takes(
    postgres_database: str, sent: Sent, owner: Any, name: str, error: BaseException, goes_on: bool
) -> None:
    raised: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))
    async with opened(postgres_database) as store:
        await submit(store, "a")
        with pytest.MonkeyPatch.context() as patch:

            def fail(*_: Any) -> None:
                patch.undo()
                raise error

            patch.setattr(owner, name, fail)
            assert await asyncio.wait_for(submit(store, "b"), WAIT) == told("b")
        assert raised == [each for each in [error] if isinstance(each, Interrupted)]
        before = sent.times
        assert await asyncio.wait_for(submit(store, "c"), WAIT) == told("c")
        assert sent.times - before == goes_on, "the next goes by itself again, unless the connection is another one"
    check(postgres_database, "abc")


async def test_an_answer_that_others_read_on_the_loops_own_thread_is_handed_out(
    postgres_database: str, sent: Sent
) -> None:
    async with opened(postgres_database) as store:
        await submit(store, "a")
        with pytest.MonkeyPatch.context() as patch:
            # The loop sees nothing to read: the others have been first.
            patch.setattr(asyncio.SelectorEventLoop, "add_reader", lambda *_: None)
            waiting = asyncio.ensure_future(submit(store, "b"))
            await sent.first.wait()
        assert sent.session is not None
        sent.session.wire.settle()
        assert sent.written == [True]
        assert await asyncio.wait_for(waiting, WAIT) == told("b")
        assert await asyncio.wait_for(submit(store, "c"), WAIT) == told("c")
    check(postgres_database, "abc")


async def test_calls_of_many_loops_are_each_answered(postgres_database: str) -> None:
    names = "bcdefghijklmnopqrstuvwxyz"

    async def submit_all(store: PostgresStore, loop: int) -> None:
        for name in names:
            pair = [submit(store, f"{name}{loop}{each}") for each in range(1 + loop % 2)]
            for answer in await asyncio.wait_for(asyncio.gather(*pair), WAIT):
                assert isinstance(answer, Submitted)
                assert not answer.replayed

    async with opened(postgres_database) as store:
        await submit(store, "a")
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, submit_all(store, loop)) for loop in range(3)))
    with plain(postgres_database) as other:
        assert one(other, COUNTED) == 1 + 4 * len(names)


async def test_a_forked_child_keeps_nothing_of_the_calls_of_any_loop(postgres_database: str, sent: Sent) -> None:
    async def leave(store: PostgresStore) -> None:
        sent.first = asyncio.Event()
        waiting = asyncio.ensure_future(submit(store, "b"))
        await sent.first.wait()
        waiting.cancel()

    with psycopg.connect(postgres_database) as other:
        before = channels()
        async with opened(postgres_database) as store:
            await submit(store, "a")
            other.execute("LOCK TABLE perdure_count_changes IN ACCESS EXCLUSIVE MODE")
            await asyncio.to_thread(asyncio.run, leave(store))
            sent.first = asyncio.Event()
            waiting = asyncio.ensure_future(submit(store, "c"))
            await sent.first.wait()
            assert not sent.told
            child = os.fork()
            if child == 0:
                os._exit(len(channels() - before))
            _, status = os.waitpid(child, 0)
            other.rollback()
            assert os.waitstatus_to_exitcode(status) == 0
            assert await asyncio.wait_for(waiting, WAIT) == told("c")
    check(postgres_database, "abc")
