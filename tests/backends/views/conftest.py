"""A store of each sort with one worker, its clock in the test's hand, and views beside it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.making import World
from conformance.stores import STORES, ManualClock


@pytest.fixture(params=sorted(STORES))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """An empty store with a worker `w` for the usual kind and queue."""
    plug, clock = STORES[request.param], ManualClock()
    store = await plug.open(tmp_path, clock)
    try:
        made = World(store, clock, plug, tmp_path)
        await made.worker()
        yield made
    finally:
        await store.close()
        plug.leave(tmp_path)
