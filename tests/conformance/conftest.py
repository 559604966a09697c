"""Opens each store for each test, and afterwards asks whether its rows contradict each other."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.histories import broken_histories
from conformance.making import World
from conformance.stores import STORES, ManualClock


@pytest.fixture(params=sorted(STORES))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """An empty store with a worker `w` for the usual kind and queue."""
    plug = STORES[request.param]
    clock = ManualClock()
    store = await plug.open(tmp_path, clock)
    try:
        made = World(store, clock, plug, tmp_path)
        await made.worker()
        yield made
        assert not plug.contradictions(tmp_path)
        assert not await broken_histories(made)
    finally:
        await store.close()
        plug.leave(tmp_path)
