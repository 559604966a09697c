"""The tests of the app, with a gateway in the place of the file."""

import asyncio

import pytest

import perdure
from client.serving import served_by_a_thread


@pytest.fixture
def app(tmp_path):
    with served_by_a_thread(tmp_path / "app.db") as url:
        app = perdure.App(url)

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

        yield app
        app.sync.close()
