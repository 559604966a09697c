"""When a whole flush fails, everybody in it is told, each with an error of their own."""

import asyncio
from pathlib import Path

import pytest

from backends.sqlite.notes import ADDING, make_table
from perdure.errors import StoreUnreachable, Unavailable
from perdure.flush import Call
from perdure.store.sqlite.store import SqliteStore


async def test_no_two_calls_share_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), inline=True)
    await make_table(store)
    commits = store.writer.commits
    cause = OSError("gone")

    def fail(*_: object) -> None:
        raise StoreUnreachable("gone", path="x") from cause

    monkeypatch.setattr(commits, "_in_turn", fail)
    calls = [Call(ADDING, ["a"]), Call(ADDING, ["b"])]
    await asyncio.to_thread(commits.flush, calls)
    first, second = (call.error for call in calls)
    assert isinstance(first, Unavailable)
    assert isinstance(second, Unavailable)
    assert first is not second
    assert first.fields is not second.fields
    assert (str(first), first.fields, first.__cause__) == (str(second), second.fields, cause)
    monkeypatch.undo()
    await store.close()
