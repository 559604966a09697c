"""Opens each store for each test, and afterwards asks whether its rows contradict each other."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

# Before they are imported, so that their assertions tell what differed.
pytest.register_assert_rewrite("conformance.lives", "conformance.model", "conformance.making")

from conformance.histories import broken_histories  # noqa: E402
from conformance.making import World  # noqa: E402
from conformance.stores import STORES, ManualClock  # noqa: E402


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
