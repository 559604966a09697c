"""The examples run as they stand, each in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "hello.py": ["Hello, world!"],
    "retries.py": ["charged 1999 cents at attempt 3", "dead_lettered because permanent", "on its way", "cancelled"],
    "job_results.py": ["succeeded", "100.00 from north, south", "'total': 10000"],
    "sync_script.py": ["[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]", "the worker ended with 0"],
    "transactional_submit.py": ["rolled back: we have no unicorns", "confirmed order 1", "tasks in the store: 1"],
}


def run(*arguments: str, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A worker tells of attempts that failed; nothing else may be said there.
    assert [line for line in done.stderr.splitlines() if not line.startswith("attempt ")] == []
    return done.stdout


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_runs_and_says_what_it_should(name, tmp_path):
    said = run(str(EXAMPLES / name), folder=tmp_path)
    for line in SAID[name]:
        assert line in said


def test_the_example_of_testing_passes(tmp_path):
    options = ("-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    assert "2 passed" in run("-m", "pytest", *options, str(EXAMPLES / "test_shop.py"), folder=tmp_path)


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SAID, "test_shop.py"}
