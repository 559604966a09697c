"""`perdure task logs`: all of a log, or as it comes."""

import asyncio
import threading
from pathlib import Path

import pytest

import perdure
from cli.conftest import Perdure

NOBODY = "0198c5a4-7f3e-7abc-8def-0123456789ab"


@pytest.fixture
def app(store: Path) -> perdure.App:
    app = perdure.App(store)

    @app.task("talk")
    async def talk(lines: int, *, ctx: perdure.Context) -> None:
        for number in range(lines):
            ctx.logger.info("line %d \x1b[31m", number)

    return app


def run(app: perdure.App, lines: int) -> str:
    """The id of a task that has run."""

    async def ran() -> str:
        async with app, app.worker():
            handle = await app.submit("talk", lines=lines)
            await handle.wait(10)
            return handle.id

    return asyncio.run(ran())


def test_a_log_is_written_in_order_and_what_is_missing_is_told(app: perdure.App, perdure: Perdure) -> None:
    task_id = run(app, 2_000)
    shown = perdure("task", "logs", task_id)
    lines = shown.out.splitlines()
    assert lines[0].startswith("attempt ")
    assert lines[1].endswith("info     line 0 �[31m")
    assert "... 1001 lines not kept ..." in lines
    assert lines[-1].endswith("line 1999 �[31m")
    document = perdure("task", "logs", task_id, "--json").json
    assert [each["message"] for each in document["logs"][:2]] == ["line 0 \x1b[31m", "line 1 \x1b[31m"]
    assert document["logs"][0]["at"].endswith("Z")


def test_a_task_that_logged_nothing_says_so_and_an_unknown_one_is_refused(app: perdure.App, perdure: Perdure) -> None:
    task_id = run(app, 0)
    assert perdure("task", "logs", task_id).err.strip() == "nothing is logged"
    assert perdure("task", "logs", task_id, "--json").json == {"logs": []}
    assert perdure("task", "logs", task_id, "--follow").code == 0
    for follow in ((), ("--follow",)):
        answer = perdure("task", "logs", NOBODY, "--json", *follow)
        assert (answer.code, answer.problem["code"]) == (2, "not_found")


def test_following_ends_with_the_task_and_has_every_line(app: perdure.App, perdure: Perdure) -> None:
    task_id = perdure("submit", "talk", '{"lines": 3}').out.strip()

    async def work() -> None:
        async with app, app.worker():
            await app.handle(task_id).wait(20)

    working = threading.Thread(target=asyncio.run, args=(work(),))
    working.start()
    shown = perdure("task", "logs", task_id, "--follow")
    working.join()
    assert [line.split("info     ")[1][:6] for line in shown.out.splitlines()[1:]] == ["line 0", "line 1", "line 2"]
