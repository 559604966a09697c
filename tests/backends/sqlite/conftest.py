from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backends.sqlite.notes import make_table
from perdure.store.sqlite.store import SqliteStore


@pytest.fixture(params=[False, True], ids=["threads", "inline"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open store with a table of notes, with threads and without."""
    opened = await SqliteStore.open(str(tmp_path / "perdure.db"), inline=request.param, synchronous="NORMAL")
    await make_table(opened)
    yield opened
    await opened.close()


@pytest.fixture
async def threaded(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open store with a table of notes and a writer's thread."""
    opened = await SqliteStore.open(str(tmp_path / "perdure.db"), synchronous="NORMAL")
    await make_table(opened)
    yield opened
    await opened.close()
