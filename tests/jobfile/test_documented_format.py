"""The page on job files tells the truth."""

import re
from pathlib import Path

from perdure.app import App
from perdure.domain.states import JobState
from perdure.engine.requests import JobTaskRequest
from perdure.jobfile import read_job
from perdure.testing import TestApp

PAGE = (Path(__file__).parents[2] / "docs" / "job_files.md").read_text(encoding="utf-8")


def test_the_documented_job_is_a_job() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert list(read_job("page.yaml", text.encode()).parents()) == ["extract", "render", "alert"]


async def test_the_documented_job_runs_as_printed() -> None:
    app = App()

    @app.task("orders.extract")
    async def extract(day: str) -> list[str]:
        return [f"an order of {day}"]

    @app.task("report.render")
    async def render(orders: list[str]) -> str:
        return ", ".join(orders)

    @app.task("mail.send")
    async def send(to: str) -> None:
        raise AssertionError(f"nothing failed that {to} should hear of")

    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    async with TestApp(app) as t:
        engine = (await app.system()).engine
        await engine.declare(app.registry.definitions(), app.principal)
        job = await engine.submit_job(read_job("page.yaml", text.encode()).request, app.principal)
        await t.run_until_idle()
        results = {each.kind: each.view.result for each in t.submitted()}
        rendered = results["report.render"]
        assert rendered is not None
        assert rendered.data == b'"an order of 2026-11-29"'
        view = await engine.views.job(app.principal.organization, job.id)
        assert view is not None
        assert view.state == JobState.SUCCEEDED


def test_every_field_of_a_task_is_documented() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == set(JobTaskRequest.__struct_fields__) - {"idempotency_key"}
