"""How a test says that it cannot run here: loudly, and not at all where everything has to run."""

import os
import sys
from typing import NoReturn

import pytest

REQUIRE_ALL = "PERDURE_TEST_REQUIRE_ALL"
"""Set to 1 where all that the tests need is there: then what cannot run fails."""


def skip(reason: str) -> NoReturn:
    """Leave the running test out, for this reason; under `REQUIRE_ALL` it fails instead."""
    if os.environ.get(REQUIRE_ALL) == "1":
        pytest.fail(f"{REQUIRE_ALL} is set, and this test cannot run: {reason}", pytrace=False)
    print(f"NOT TESTED: {reason}", file=sys.__stderr__, flush=True)
    pytest.skip(f"NOT TESTED: {reason}")
