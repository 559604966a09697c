"""An engine on a real store, both in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from engine.making import Bench
from migrated import lay
from perdure.ambient import Chance, Ids
from perdure.engine.engine import Engine
from perdure.store.sqlite.store import SqliteStore
from virtual_time import VirtualClock, VirtualLoop


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
    """Every test here runs in virtual time."""
    return {"virtual": VirtualLoop}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """An engine, its store and its clock."""
    clock = VirtualClock(asyncio.get_running_loop())
    store = await SqliteStore.open(lay(tmp_path / "store.db"), clock=clock, inline=True, synchronous="OFF")
    ids = Ids(clock)
    engine = Engine(store, clock=clock, ids=ids, chance=Chance(1))
    try:
        yield Bench(engine, store, clock, ids)
    finally:
        await engine.close()
        await store.close()
