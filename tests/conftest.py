"""What holds for all tests."""

import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from skipping import skip

if TYPE_CHECKING:
    from servers.databases import Databases

# Modules of the suites that hold assertions and are imported by more than one of them.
pytest.register_assert_rewrite("conformance.lives", "conformance.making", "conformance.model", "conformance.histories")

# A runner in the background of a shell ignores this signal, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have to tell (`record_property("told", ...)`), from whichever process ran them."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "told":
                terminalreporter.section(report.nodeid.rpartition("::")[2])
                terminalreporter.line(str(value))


def pytest_sessionfinish() -> None:
    """End the server that tests of this process have shared."""
    if (databases := sys.modules.get("servers.databases")) is not None:
        databases.end_shared()


@pytest.fixture(scope="session")
def postgres_databases() -> "Databases":
    """A PostgreSQL server of this run's own, for databases of tests."""
    from servers.databases import shared
    from servers.postgres import NoServer

    try:
        return shared()
    except NoServer as reason:
        skip(str(reason))


@pytest.fixture
def postgres_database(postgres_databases: "Databases") -> Iterator[str]:
    """The URL of a migrated database without rows."""
    url = postgres_databases.take()
    yield url
    postgres_databases.give_back(url)
