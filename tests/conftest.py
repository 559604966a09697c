"""What holds for all tests."""

import signal

import pytest

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
