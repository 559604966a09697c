"""Kinds and queues whose names may be mistyped are noted by every command that names them."""

import asyncio
from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure.app import App

NEW = "the kind shop.charg is new to this store"
MEANT = "did you mean shop.charge?"

JOB = "name: j\ntasks:\n- {name: a, kind: shop.charg}\n"
SET = "set: s\nschedules:\n  daily:\n    cron: '@daily'\n    task: {kind: shop.charg}\n"


@pytest.fixture
def shop(perdure: Perdure) -> Perdure:
    """A store that knows one kind."""
    app = App()

    @app.task("shop.charge")
    async def charge() -> None: ...

    async def declare() -> None:
        async with app:
            await (await app.operations()).declare(app.registry.definitions(), app.principal)  # type: ignore[attr-defined]

    asyncio.run(declare())
    return perdure


def test_a_task_a_job_and_a_schedule_of_a_kind_that_is_new_are_noted(shop: Perdure) -> None:
    Path("job.yaml").write_text(JOB)
    Path("set.yaml").write_text(SET)
    for command in (
        ("submit", "shop.charg"),
        ("job", "submit", "job.yaml"),
        ("schedule", "apply", "set.yaml", "--dry-run"),
        ("schedule", "apply", "set.yaml"),
    ):
        answer = shop(*command)
        assert (answer.code, NEW in answer.err, MEANT in answer.err) == (0, True, True), (command, answer.err)
        assert shop(*command, "--json").err == ""
    Path("set.yaml").write_text(SET.replace("shop.charg", "shop.charge"))
    assert shop("schedule", "apply", "set.yaml").err == ""


def test_a_policy_of_a_queue_of_which_nothing_is_known_is_noted(perdure: Perdure) -> None:
    for command in (
        ("queue", "limit", "nope", "--concurrency", "3"),
        ("queue", "set", "nope2", "depth=3"),
        ("queue", "pause", "nope3"),
    ):
        assert f"nothing is known of a queue {command[2]} yet" in perdure(*command).err
    perdure("submit", "k", "--queue", "mail")
    assert perdure("queue", "limit", "mail", "--concurrency", "3").err == ""
