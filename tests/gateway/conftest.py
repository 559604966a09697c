import pytest

from gateway.asking import Asker, open_asker


@pytest.fixture
async def asker():
    async with open_asker() as opened:
        yield opened


@pytest.fixture
def ask(asker: Asker):
    return asker.ask
