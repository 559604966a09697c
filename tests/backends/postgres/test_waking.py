"""Hints reach the waiters of other processes; when they are lost, waiters are told to look for themselves."""

import asyncio
import logging

import pytest

from backends.postgres.opened import end_sessions, opened
from perdure.domain.limits import SECOND_US
from perdure.store.postgres import conversation
from perdure.store.postgres.conversation import Conversation
from perdure.store.wakeups import Topic

LONG = 30.0


async def test_a_hint_reaches_the_waiters_of_another_process_with_its_topics(postgres_database: str) -> None:
    async with opened(postgres_database) as here, opened(postgres_database) as there:
        waiting = here.wakeups.subscribe(Topic.ENDED)
        assert await waiting.wait(LONG) == Topic.ENDED, "whoever begins to listen looks once"
        there.wakeups.announce(Topic.CONTROL)
        there.wakeups.announce(Topic.ENDED)
        assert await waiting.wait(LONG) == Topic.ENDED


async def test_what_commits_is_announced_to_other_processes(postgres_database: str) -> None:
    async with opened(postgres_database) as here, opened(postgres_database) as there:
        waiting = here.wakeups.subscribe(Topic.READY)
        assert await waiting.wait(LONG) == Topic.READY
        await there.definitions.put("default", "queue", "q", "{}", "bob")
        assert await waiting.wait(LONG) == Topic.READY


async def test_a_process_is_not_woken_by_what_it_announced_itself(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "SAFETY_FIRST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "SAFETY_LAST_US", 3_600 * SECOND_US)
    async with opened(postgres_database) as here, opened(postgres_database) as there:
        waiting, beside = here.wakeups.subscribe(Topic.READY), there.wakeups.subscribe(Topic.ANY)
        assert await waiting.wait(LONG) == Topic.READY
        assert await beside.wait(LONG) == Topic.ANY
        here.wakeups.announce(Topic.READY)
        assert await waiting.wait(LONG) == Topic.READY
        assert await beside.wait(LONG) == Topic.READY
        # What is announced later arrives later.
        last = here.wakeups.subscribe(Topic.ENDED)
        there.wakeups.announce(Topic.ENDED)
        assert await last.wait(LONG) == Topic.ENDED
        assert await waiting.wait(0) == Topic(0)


async def test_a_listener_whose_session_was_ended_looks_at_once_and_listens_again(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "SAFETY_FIRST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "SAFETY_LAST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "DEAF_EVERY_US", 3_600 * SECOND_US)
    async with opened(postgres_database) as here, opened(postgres_database) as there:
        waiting = here.wakeups.subscribe(Topic.READY)
        assert await waiting.wait(LONG) == Topic.READY
        end_sessions(postgres_database)
        assert await waiting.wait(LONG) == Topic.READY
        there.wakeups.announce(Topic.READY)
        assert await waiting.wait(LONG) == Topic.READY


async def test_while_hints_do_not_arrive_waiters_look_often_and_that_is_told_once(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conversation, "_LISTEN", b"SELECT 1")
    monkeypatch.setattr(conversation, "DEAF_EVERY_US", SECOND_US // 100)
    monkeypatch.setattr(conversation, "PROBE_ANSWER_US", SECOND_US // 20)
    monkeypatch.setattr(conversation, "PROBE_EVERY_US", SECOND_US // 10)
    monkeypatch.setattr(conversation, "SAFETY_FIRST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "SAFETY_LAST_US", 3_600 * SECOND_US)
    with caplog.at_level(logging.WARNING, "perdure.store"):
        async with opened(postgres_database) as store:
            waiting = store.wakeups.subscribe(Topic.READY)
            for _ in range(40):
                assert await waiting.wait(LONG) == Topic.READY
            assert store.notices() == [caplog.records[0].getMessage()]
    assert [record.getMessage() for record in caplog.records if "pooler" in record.getMessage()] != []
    assert len(caplog.records) == 1


async def test_in_good_times_waiters_look_now_and_then(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "DEAF_EVERY_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "SAFETY_FIRST_US", SECOND_US // 50)
    monkeypatch.setattr(conversation, "SAFETY_LAST_US", SECOND_US // 50)
    async with opened(postgres_database) as store:
        waiting = store.wakeups.subscribe(Topic.ENDED)
        for _ in range(4):
            assert await waiting.wait(LONG) == Topic.ENDED


async def test_closing_sends_what_was_announced_last(postgres_database: str) -> None:
    async with opened(postgres_database) as here:
        waiting = here.wakeups.subscribe(Topic.ENDED)
        assert await waiting.wait(LONG) == Topic.ENDED
        async with opened(postgres_database) as there:
            there.wakeups.announce(Topic.ENDED)
        assert await waiting.wait(LONG) == Topic.ENDED


async def test_after_an_error_that_nobody_foresaw_hints_arrive_again(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hear, mended = Conversation.hear, asyncio.Event()
    loop = asyncio.get_running_loop()
    complaints: list[str | None] = []

    def fail_once(talk: Conversation) -> None:
        if not complaints and talk.descriptors():
            complaints.append(None)
            raise ValueError("nobody foresaw it")
        if len(complaints) == 1:
            complaints.append(talk.complaint)
        hear(talk)
        if len(complaints) == 2 and talk.complaint is None:
            complaints.append(None)
            loop.call_soon_threadsafe(mended.set)

    monkeypatch.setattr(Conversation, "hear", fail_once)
    with caplog.at_level(logging.WARNING, "perdure.store"):
        async with opened(postgres_database) as here, opened(postgres_database) as there:
            waiting = here.wakeups.subscribe(Topic.ENDED)
            await asyncio.wait_for(mended.wait(), LONG)
            assert not here.notices()
            await waiting.wait(0)
            there.wakeups.announce(Topic.ENDED)
            assert await waiting.wait(LONG) == Topic.ENDED
    assert "nobody foresaw it" in (complaints[1] or "")
    assert [record for record in caplog.records if record.exc_info]
