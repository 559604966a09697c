"""The job files in `examples/` run as they stand."""

from pathlib import Path

import pytest

from cli.conftest import Perdure

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "state", "counts"),
    [
        ("demo", "succeeded", {"succeeded": 48}),
        ("failure_policies", "partially_succeeded", {"succeeded": 4, "dead_lettered": 1}),
    ],
)
def test_an_example_runs(perdure: Perdure, name: str, state: str, counts: dict[str, int]) -> None:
    answer = perdure("job", "run", str(EXAMPLES / f"{name}.yaml"), "--time-scale", "0.1", "--json")
    assert answer.code == 0, answer.err
    assert (answer.json["state"], answer.json["counts"]) == (state, counts)


def test_every_job_file_is_tried() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.yaml")) == ["demo", "failure_policies"]
