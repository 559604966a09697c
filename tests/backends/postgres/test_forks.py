"""A forked child has connections and threads of its own; its parent's sessions stay as they are."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.postgres.opened import channels, one, opened, plain
from perdure.store.postgres.forking import Inheritance
from perdure.store.sqlite.forking import ForkGate
from perdure.store.wakeups import Topic


def test_parent_and_child_go_on_with_the_same_store(postgres_database: str) -> None:
    program = Path(__file__).parent / "forking_process.py"
    run = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", program, postgres_database],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.split("\n") == ["child 2", "parent 3 3", ""]


async def test_a_child_that_lives_on_does_not_keep_its_parents_sessions_open(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        await store.ledger.now_us()
        done, wait = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(wait)
            os.read(done, 1)
            os._exit(0)
        os.close(done)
        try:
            await store.close()
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
            with plain(postgres_database) as connection:
                for _ in range(1_000):
                    if one(connection, query, "perdure") == 0:
                        break
                assert one(connection, query, "perdure") == 0
        finally:
            os.close(wait)
            os.waitpid(child, 0)


async def test_a_child_keeps_no_pipe_or_connection_of_its_parents_store(postgres_database: str) -> None:
    before = channels()
    async with opened(postgres_database) as store:
        await store.ledger.now_us()
        waiting = store.wakeups.subscribe(Topic.ENDED)
        assert await waiting.wait(30) == Topic.ENDED
        child = os.fork()
        if child == 0:
            os._exit(len(channels() - before))
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("watch", [Inheritance, lambda: ForkGate("perdure.db")])
def test_opening_a_store_adds_no_hook_that_stays(
    watch: Callable[[], Inheritance | ForkGate], monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[object] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: added.append(hooks))
    watch()
    assert added == []
