"""What the programs share: `python -m bench.faults.programs.NAME URL FOLDER (prepare | work | submit ORDERS)`.

A handler is given the number of its task and how many seconds it takes; with `-1` seconds it kills its worker.
"""

import asyncio
import inspect
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from bench.faults.notes import Notes

AT_ONCE = 8
"""Tasks that a worker runs at once."""
LEASE_SECONDS = 10
"""After so long without a sign of life a task is somebody else's, where a system can be told."""
LOSSES_MAX = 3
"""How many workers a task may cost, where a system can be told."""
AGAIN_SECONDS = 0.05
POISON = -1.0


class Program(Protocol):
    """One system."""

    def prepare(self) -> Any:
        """Make the schema."""

    def work(self) -> Any:
        """Work until ended."""

    def client(self) -> AbstractAsyncContextManager[Callable[[int, float], Any]]:
        """What submits the task of a number, under a key that is the same for the same number where there are keys."""


async def run(notes: Notes, number: int, seconds: float) -> None:
    """What a handler does, where handlers are awaited."""
    notes.effect("start", number)
    if seconds == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(seconds)
    notes.effect("end", number)


def run_plainly(notes: Notes, number: int, seconds: float) -> None:
    """The same, where they are not."""
    notes.effect("start", number)
    if seconds == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds)
    notes.effect("end", number)


async def submit(program: Program, notes: Notes, first: int, count: int, seconds: float, pause: float) -> None:
    """Submit tasks one by one. What was acknowledged to an earlier client is left out, what was not is asked again."""
    done = notes.numbers("answered")
    numbers = [number for number in range(first, first + count) if number not in done]
    while numbers:
        try:
            async with program.client() as ask:
                while numbers:
                    notes.asked(numbers[0])
                    answer = ask(numbers[0], seconds)
                    if inspect.isawaitable(answer):
                        await answer
                    notes.answered(numbers.pop(0))
                    await asyncio.sleep(pause)
        except Exception as error:
            notes.refused(numbers[0], error)
            await asyncio.sleep(AGAIN_SECONDS)


def main(kind: Callable[[str, Notes], Program]) -> None:
    """Do one command."""
    url, folder, command, *words = sys.argv[1:]
    notes = Notes(folder)
    program = kind(url, notes)
    if command == "submit":
        asyncio.run(submit(program, notes, **json.loads(words[0])))
        return
    doing = getattr(program, command)()
    if inspect.isawaitable(doing):
        asyncio.run(_awaited(doing))


async def _awaited(doing: Any) -> None:
    await doing
