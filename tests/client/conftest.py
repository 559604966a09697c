"""A gateway in this process, on a store of its own."""

import pytest

from client.serving import served
from migrated import lay


@pytest.fixture
async def url(tmp_path):
    async with served(lay(tmp_path / "served.db")) as url:
        yield url
