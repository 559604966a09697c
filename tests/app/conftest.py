"""An app on a file of its own, with a few handlers."""

import asyncio

import pytest

import perdure
from migrated import lay


@pytest.fixture
def app(tmp_path):
    app = perdure.App(lay(tmp_path / "app.db"))

    @app.task("greet", queue="bulk", priority=7, retry=perdure.Retry(5), timeout=9)
    async def greet(person: str) -> str:
        return f"Hello, {person}"

    @app.task("add")
    def add(left: int, right: int = 1) -> int:
        return left + right

    @app.task("sum")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task("fail", max_attempts=1)
    async def fail(text: str) -> None:
        raise ValueError(text)

    @app.task("hang")
    async def hang() -> None:
        await asyncio.Event().wait()

    return app
