"""All tasks that have something in common: cancelled, run again, discarded, purged."""

from datetime import UTC, datetime, timedelta

import pytest

import perdure


async def test_all_that_match_are_cancelled(app):
    async with app:
        ours = [await app.submit("add", left=number, labels={"team": "x"}) for number in range(3)]
        other = await app.submit("add", left=1)
        assert await app.cancel_all(labels={"team": "x"}, dry_run=True) == {"matched": 3}
        assert await app.cancel_all(labels={"team": "x"}, text="no more") == {"matched": 3, "cancelled": 3}
        assert [await handle.wait(1) for handle in ours] == ["cancelled"] * 3
        assert (await other.status()).state == "queued"
        with pytest.raises(perdure.Invalid):
            await app.cancel_all()


async def test_dead_letters_that_match_run_again_or_are_done_with(app):
    async with app, app.worker():
        handles = [await app.submit("fail", text="no") for _ in range(3)]
        await perdure.wait_all(handles, 10)
    async with app:
        long_ago = datetime.now(UTC) - timedelta(days=1)
        assert await app.requeue_all(ended_before=long_ago) == {"matched": 0}
        counts = await app.requeue_all(kinds=["fail"], reasons=["exhausted"], ended_from=long_ago, rate=1000)
        assert counts == {"matched": 3, "requeued": 3}
        assert (await handles[0].status()).generation == 2
    async with app, app.worker():
        again = [app.handle(handle.id) for handle in handles]  # The first ones know how their tasks ended before.
        await perdure.wait_all(again, 10)
    async with app:
        assert await app.discard_all() == {"matched": 3, "discarded": 3}
        assert await app.purge_all(queues=["default"]) == {"matched": 3, "purged": 3}
        with pytest.raises(perdure.NotFound):
            await handles[0].status()


def test_the_same_without_await(app):
    with app.sync as sync:
        handle = sync.submit("add", left=1)
        assert sync.cancel_all(kinds=["add"], dry_run=True) == {"matched": 1}
        assert sync.cancel_all(kinds=["add"]) == {"matched": 1, "cancelled": 1}
        assert handle.wait(5) == "cancelled"
        assert sync.requeue_all() == sync.discard_all() == sync.purge_all() == {"matched": 0}
