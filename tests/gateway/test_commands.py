"""Commands at a gateway say what they say at the store itself."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from gateway.lives import WORKER
from gateway.serving import PATIENCE, served_process
from perdure.cli.main import run


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Sides(NamedTuple):
    """A store and a gateway to it, where a worker serves the queue `default` for the kind `greet`."""

    file: str
    url: str


Command = Callable[..., Said]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("sides")
    with served_process(folder) as (_, url):
        body = {"id": WORKER, "name": "w", "kinds": ["greet"], "queues": ["default"], "capacity": 1}
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{url}/v1/worker/register", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert answer.status == 200
        yield Sides(str(folder / "perdure.db"), url)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def say(*arguments: str) -> Said:
        capsys.readouterr()
        code = run(arguments)
        return Said(code, *capsys.readouterr())

    return say


def untagged(out: str) -> str:
    """Without the tag, which is another for each version of a document."""
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith("etag "))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("submit", "greet", "{}", "--queue", "defualt"), "no live worker serves the queue defualt for the kind greet"),
        (("submit", "great", "{}"), "no live worker has the kind great"),
        (("submit", "greet", "{}"), ""),
    ],
)
def test_what_nobody_serves_is_noted(sides: Sides, command: Command, arguments: tuple[str, ...], words: str) -> None:
    here, there = (command(*arguments, "--store", side) for side in sides)
    assert (here.code, here.err) == (there.code, there.err)
    assert words in here.err
    assert bool(words) == bool(here.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "pause", "default"),
        ("queue", "resume", "default"),
        ("queue", "set", "mail", "depth=5"),
        ("queue", "set", "mail", "depth=many"),
        ("queue", "set", "mail", "deepth=5"),
        ("queue", "pause", "no name"),
        ("queue", "limit", "mail", "--concurrency", "0"),
        ("queue", "purge", "mail", "--yes"),
        ("queue", "list"),
        ("queue", "list", "--json"),
    ],
)
def test_what_is_said_of_queues_is_the_same(sides: Sides, command: Command, arguments: tuple[str, ...]) -> None:
    # Who asks first is told that nothing is known of a queue yet: both stand before the same store.
    command("queue", "set", "mail", "depth=4", "--store", sides.file)
    here, there = (command(*arguments, "--store", side) for side in sides)
    assert here._replace(out=untagged(here.out)) == there._replace(out=untagged(there.out))
