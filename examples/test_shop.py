"""How to test your own tasks: a store in memory, and time that moves only when the test says so.

Run it: pytest examples/test_shop.py (with pytest-asyncio in auto mode)
"""

from collections.abc import AsyncIterator

import pytest

import perdure
from perdure.testing import TestApp

app = perdure.App()


@app.task("remind", retry=perdure.Retry(3, backoff="fixed", base=60, jitter=0))
async def remind(user: str, *, ctx: perdure.Context) -> str:
    if ctx.attempt == 1:
        raise ConnectionError("no mail server")
    return f"reminded {user}"


async def sign_up(user: str) -> None:
    """The code under test: a reminder is to be sent in a week."""
    await app.submit(remind, user=user, delay=7 * 86400)


@pytest.fixture
async def t() -> AsyncIterator[TestApp]:
    async with TestApp(app) as testing:
        yield testing


async def test_a_reminder_is_sent_after_a_week(t: TestApp) -> None:
    await sign_up("ann")
    [reminder] = t.assert_submitted("remind", user="ann")
    await t.advance(7 * 86400)
    await t.advance(60)  # the first attempt fails, the second comes a minute later
    assert await app.handle(reminder.id, remind).result(timeout=0) == "reminded ann"


async def test_nobody_is_reminded_early(t: TestApp) -> None:
    await sign_up("bob")
    assert await t.advance(6 * 86400) == 0
