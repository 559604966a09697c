"""What the mutants need of pytest: which statements each test runs, and tests in a chosen order."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mutants.hand_made import HAND_MADE


class Recorder:
    """Notes which statements each test runs, and how long it takes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ran: set[str] = set()
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_configure(self) -> None:
        from perdure.store.sqlite import transaction

        ran = self

        class Noting(dict[str, str]):
            def __getitem__(self, name: str) -> str:
                ran._ran.add(name)
                return super().__getitem__(name)

        transaction.STATEMENTS = Noting(transaction.STATEMENTS)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._ran.clear()
        begun = time.monotonic()
        answer = yield
        self._tests[item.nodeid] = {"statements": sorted(self._ran), "seconds": time.monotonic() - begun}
        return answer

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._tests))


class Chosen:
    """Runs some tests only, in this order."""

    def __init__(self, order: Sequence[str]) -> None:
        self._places = {nodeid: place for place, nodeid in enumerate(order)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda item: self._places[item.nodeid]
        )


def pytest_configure(config: pytest.Config) -> None:
    """Put in the hand-made mutant that the environment names, where this module itself is the plugin (`-p`)."""
    name = os.environ.get("PERDURE_MUTANT")
    if name is not None:
        next(each for each in HAND_MADE if each.name == name).put()
