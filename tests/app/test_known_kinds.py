"""A kind that may be mistyped is told of in the log, and the submit goes on whatever comes of that."""

import asyncio
import logging

import pytest

import perdure
from perdure.app import known_kinds


async def test_a_kind_that_nobody_has_is_told_once_with_the_one_that_may_be_meant(app, caplog):
    async with app:
        await app.submit("greet", person="Ann")  # Which makes the kind known to the store.
        with caplog.at_level(logging.WARNING, "perdure.app"):
            await app.submit("greeet", person="Ann")
            await app.submit("greeet", person="Bob")
    [told] = [each.getMessage() for each in caplog.records if each.name == "perdure.app"]
    assert told.endswith("which neither this app nor any worker has yet; did you mean 'greet'?")


@pytest.mark.parametrize("many", [False, True])
async def test_a_submit_does_not_fail_where_the_known_kinds_cannot_be_read(app, monkeypatch, many):
    async def kinds(by):
        raise perdure.StoreUnreachable("no answer")

    async with app:
        monkeypatch.setattr((await app.system()).engine, "kinds", kinds)
        if many:
            [handle] = await app.submit_many([app.call("greeet")])
        else:
            handle = await app.submit("greeet")
        with app.job("one") as job:
            job.add("greeet.too")
        assert (await handle.status()).state == "queued"
        assert (await (await job.submit()).status()).total == 1


async def test_a_submit_does_not_wait_for_kinds_that_are_not_told_soon(app, monkeypatch):
    monkeypatch.setattr(known_kinds, "WONDER_SECONDS", 0.01)
    async with app:
        monkeypatch.setattr((await app.system()).engine, "kinds", lambda by: asyncio.Event().wait())
        handle = await asyncio.wait_for(app.submit("greeet"), 30)
        assert (await handle.status()).state == "queued"
