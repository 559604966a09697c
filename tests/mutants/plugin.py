"""What the mutants need of pytest: what happens in tests, and a fault put in before them."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mutants.differing import Differing
from mutants.hand_made import HAND_MADE


class Failures:
    """Notes whether tests fail, and whether by an assertion."""

    def __init__(self) -> None:
        self.asserted = False
        self.error = ""
        """The first error that is none."""

    @pytest.hookimpl
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
        if call.excinfo is None or issubclass(call.excinfo.type, pytest.skip.Exception):
            return
        if issubclass(call.excinfo.type, AssertionError | pytest.fail.Exception):
            self.asserted = True
        elif not self.error:
            self.error = f"{call.excinfo.type.__name__}: {call.excinfo.value}".partition("\n")[0][:150]


class Recorder:
    """Notes in which tests each mutant makes a difference, how long the tests take, and which fail."""

    def __init__(self, differing: Differing) -> None:
        self.tests: dict[str, list[str]] = {}
        """By test, the mutants."""
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self._differing = differing

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        self._differing.begin()
        begun = time.monotonic()
        answer = yield
        self.tests[item.nodeid] = self._differing.made()
        self.seconds[item.nodeid] = time.monotonic() - begun
        return answer

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """Put in the hand-made mutant that the environment names, where this module itself is the plugin (`-p`)."""
    name = os.environ.get("PERDURE_MUTANT")
    if name is not None:
        next(each for each in HAND_MADE if each.name == name).put()
