"""The page on job files tells the truth."""

import re
from pathlib import Path

from perdure.engine.requests import JobTaskRequest
from perdure.jobfile import read_job

PAGE = (Path(__file__).parents[2] / "docs" / "job_files.md").read_text(encoding="utf-8")


def test_the_documented_job_is_a_job() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert list(read_job("page.yaml", text.encode()).parents()) == ["extract", "render", "alert"]


def test_every_field_of_a_task_is_documented() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == set(JobTaskRequest.__struct_fields__) - {"idempotency_key"}
