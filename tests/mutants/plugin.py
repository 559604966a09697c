"""What the mutants need of pytest: in which tests they make a difference, and a fault put in before the tests."""

import os
import time
from collections.abc import Iterator

import pytest

from mutants.differing import Differing
from mutants.hand_made import HAND_MADE


class Recorder:
    """Notes in which tests each mutant makes a difference, and how long the tests take."""

    def __init__(self, differing: Differing) -> None:
        self.tests: dict[str, list[str]] = {}
        """By test, the mutants."""
        self.seconds: dict[str, float] = {}
        self._differing = differing

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        self._differing.noticed.clear()
        begun = time.monotonic()
        answer = yield
        self.tests[item.nodeid] = sorted(self._differing.noticed)
        self.seconds[item.nodeid] = time.monotonic() - begun
        return answer


def pytest_configure(config: pytest.Config) -> None:
    """Put in the hand-made mutant that the environment names, where this module itself is the plugin (`-p`)."""
    name = os.environ.get("PERDURE_MUTANT")
    if name is not None:
        next(each for each in HAND_MADE if each.name == name).put()
