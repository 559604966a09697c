"""The walks in the documents lead where they say: every command is typed as printed, and answers as printed.

A block ```console walk is a terminal: `$` lines are typed, what follows is what they answer, with `...` for what
differs each time. ```console walk beside is another one, where something goes on running: what it prints is waited for.
```python walk NAME is a file (or ```yaml). `ID` in a command is the last id that was printed.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if " walk" in page.read_text(encoding="utf-8"))
PORT = "7373"
"""Where `perdure serve` listens in the documents; in the test, wherever a port is free."""
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d+Z?")
GAP = re.compile(r" {2,}")
PATIENCE_SECONDS = 60


class Block(NamedTuple):
    place: str
    words: list[str]
    text: str


class Typed(NamedTuple):
    command: str
    answer: str


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_walk_leads_where_it_says(page, tmp_path):
    with Walk(tmp_path) as walk:
        for block in _blocks(page):
            walk.take(block)


def test_there_are_walks():
    assert {page.stem for page in PAGES} >= {"getting_started", "http_api"}


class Walk:
    """One reader of one page: a folder, terminals, and the id that was printed last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._id = ""
        self._port = str(_free_port())
        self._beside: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
        self._environment |= {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PERDURE_LISTEN": f"127.0.0.1:{self._port}",
            "TZ": "UTC",
            "COLUMNS": "120",
        }

    def __enter__(self) -> "Walk":
        return self

    def __exit__(self, *_: object) -> None:
        for process, _ in reversed(self._beside):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process, _ in self._beside:
            process.wait(PATIENCE_SECONDS)

    def take(self, block: Block) -> None:
        if "console" not in block.words:
            (self._folder / block.words[-1]).write_text(block.text, encoding="utf-8")
            return
        for typed in _typed(block.text):
            command = self._filled(typed.command)
            (self._begin if "beside" in block.words else self._type)(block.place, command, typed.answer)

    def _type(self, place: str, command: str, answer: str) -> None:
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        printed = run.stdout.decode()
        self._remember(printed)
        assert self._expected(answer).fullmatch(_without_margins(printed)), (
            f"{place}: {command}\nprinted:\n{printed}\nand the page says:\n{answer}"
        )

    def _begin(self, place: str, command: str, answer: str) -> None:
        log = self._folder / f"beside-{len(self._beside)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"exec env {command}"],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._beside.append((process, log))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._expected(answer).search(log.read_text(encoding="utf-8")):
            assert process.poll() is None, f"{place}: {command} ended:\n{log.read_text(encoding='utf-8')}"
            assert time.monotonic() < deadline, f"{place}: {command}\nprinted:\n{log.read_text(encoding='utf-8')}"
            time.sleep(0.02)

    def _filled(self, command: str) -> str:
        return re.sub(r"\bID\b", self._id, command).replace(PORT, self._port)

    def _expected(self, answer: str) -> re.Pattern[str]:
        return _pattern(answer.replace(PORT, self._port))

    def _remember(self, printed: str) -> None:
        if ids := ID.findall(printed):
            self._id = ids[-1]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w+[^\n]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        words = match.group(1).split()
        if "walk" in words:
            yield Block(f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}", words, match.group(2))


def _typed(text: str) -> Iterator[Typed]:
    """The commands of a terminal, each with what it answers."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        length = next(length for length in range(1, len(lines) + 1) if _is_whole("\n".join(lines[:length])))
        yield Typed("\n".join(lines[:length]), "\n".join(lines[length:]).strip())


def _is_whole(command: str) -> bool:
    """Whether the shell would not wait for another line: no backslash at its end, no quote open."""
    return not command.endswith("\\") and command.count("'") % 2 == 0


def _without_margins(printed: str) -> str:
    return "\n".join(line.rstrip() for line in printed.strip().splitlines())


def _pattern(answer: str) -> re.Pattern[str]:
    """What matches the answer with other ids, at another time, in columns of another width."""
    for each, stands_for in ((ID, "<id>"), (TIME, "<time>"), (re.compile(r"\.\.\."), "<any>"), (GAP, "<gap>")):
        answer = each.sub(stands_for, answer)
    text = re.escape(answer)
    for stands_for, pattern in (("id", ID.pattern), ("time", TIME.pattern), ("any", ".*?"), ("gap", r" +")):
        text = text.replace(re.escape(f"<{stands_for}>"), pattern)
    return re.compile(text, re.DOTALL)


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]
