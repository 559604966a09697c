"""The public API as a type checker sees it: what is submitted comes back as what the handler returns."""

import subprocess
import sys

import pytest

PROGRAM = """
import perdure
from dataclasses import dataclass

app = perdure.App()


@dataclass
class Report:
    pages: int


@app.task("render", retry=perdure.Retry(5), timeout=60)
async def render(month: str, *, ctx: perdure.Context) -> Report:
    return Report(len(month))


@app.task("count")
def count(text: str) -> int:
    return len(text)


@app.task("poll")
async def poll() -> int | perdure.Snooze:
    return perdure.Snooze(5)


async def main() -> None:
    reveal_type(await (await app.submit(poll)).result())
    reveal_type(await app.submit(render, month="2026-11"))
    reveal_type(await (await app.submit(render, month="2026-11")).result())
    reveal_type(await app.submit(count.call("x"), idempotency_key="k"))
    reveal_type(await app.submit("some.kind", x=1))
    reveal_type(await app.submit_many([count.call("x")]))
    reveal_type(count("x"))
    reveal_type(app.sync.submit(count, text="x").result())
    with app.job("j") as job:
        node = job.add(count, text="x")
    handle = await job.submit()
    reveal_type(handle[node])
    reveal_type(app.handle("some-id", count))
"""
REVEALED = [
    "int",
    "Handle[program.Report]",
    "program.Report",
    "Handle[int]",
    "Handle[Any]",
    "list[perdure.app.handle.Handle[int]]",
    "int",
    "int",
    "Handle[int]",
    "Handle[int]",
]

WRONG = """
import perdure

app = perdure.App()


@app.task("count", retries=3)
def count(text: str) -> int:
    return len(text)


async def main() -> None:
    await app.submit(count, text="x", priority="high")
    count(1)
    text: str = await (await app.submit(count, text="x")).result()
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typing")

    def checked(program: str) -> str:
        (folder / "program.py").write_text(program)
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "program.py"]
        return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, cwd=folder).stdout

    return checked


@pytest.mark.timeout(120)
def test_results_have_the_type_of_their_handler(check):
    said = check(PROGRAM)
    shown = [line.split('"')[1].replace("builtins.", "") for line in said.splitlines() if "Revealed type" in line]
    assert len(shown) == len(REVEALED)
    for given, wanted in zip(shown, REVEALED, strict=True):
        assert given.endswith(wanted), said
    assert "error" not in said


@pytest.mark.timeout(120)
def test_mistakes_are_found_before_they_run(check):
    said = check(WRONG)
    lines = {int(line.split(":")[1]) for line in said.splitlines() if "error" in line and line.startswith("program.py")}
    assert lines == {7, 13, 14, 15}, said
