"""Processes forked from one that has imported and collected everything: a mutant is put into one of them only."""

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable

TOO_LONG = "it takes too long"
LOOK_SECONDS = 0.02
LOUD = "PERDURE_MUTANTS_LOUD"
"""Set in the environment, it lets what the children print be seen."""

Tell = Callable[[str], None]


class Child:
    """A process that acts and tells something; it is killed when it takes too long, which counts as an answer."""

    def __init__(self, act: Callable[[Tell], None], seconds: float) -> None:
        sys.stdout.flush()
        self._answer = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._looks = round(seconds / LOOK_SECONDS)
        """The seconds are counted in looks: who stops both processes with a signal does not use up patience."""
        self._pid = os.fork()
        if not self._pid:
            _act(act, self._answer.fileno())

    def look(self) -> str | None:
        """What it told, once it has ended."""
        ended, status = os.waitpid(self._pid, os.WNOHANG)
        self._looks -= 1
        if not ended and self._looks > 0:
            return None
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        with self._answer:
            if not ended:
                return TOO_LONG
            self._answer.seek(0)
            code = os.waitstatus_to_exitcode(status)
            return self._answer.read() or ("" if code == 0 else f"it ends with {code}")


def answers(children: list[Child]) -> list[str]:
    """What each told, once all have ended."""
    told: dict[int, str] = {}
    while len(told) < len(children):
        time.sleep(LOOK_SECONDS)
        for place, child in enumerate(children):
            if place not in told and (answer := child.look()) is not None:
                told[place] = answer
    return [told[place] for place in range(len(children))]


def _act(act: Callable[[Tell], None], answer: int) -> None:
    code = 70
    try:
        os.setpgid(0, 0)
        if not os.environ.get(LOUD):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        act(lambda told: os.pwrite(answer, told.encode(), 0) and None)
        code = 0
    finally:
        os._exit(code)
