"""Errors for people and for scripts: one line or one JSON object on standard error, and an exit code."""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from perdure.cli.misplaced import advice_on
from perdure.errors import PerdureError

SUCCEEDED = 0
FAILED = 1
USAGE = 2
NO_STORE = 3
INTERRUPTED = 130

_PLAIN = (
    (re.compile(r" is not a valid float(?: range)?\b"), " is not a number"),
    (re.compile(r" is not a valid int(?:eger)?(?: range)?\b"), " is not a whole number"),
    (re.compile(r"(\S+) is not in the range (\S+?)<=x<=(\S+?)\.?$"), r"\1 is not between \2 and \3"),
    (re.compile(r"(\S+) is not in the range x>=(\S+?)\.?$"), r"\1 is less than \2"),
    (re.compile(r"(\S+) is not in the range x<=(\S+?)\.?$"), r"\1 is more than \2"),
)


def tell(error: Exception, as_json: bool) -> int:
    """Write the error and return its exit code. What is not one of perdure's errors is called a defect."""
    if isinstance(error, PerdureError):
        _write(error.code, error.message, error.fields, as_json)
        return error.exit_code
    fact = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _write("internal", f"{fact} (a defect of perdure; `perdure --debug ...` shows where)", {}, as_json)
    return FAILED


def tell_usage(problem: Any, as_json: bool, arguments: Sequence[str] = ()) -> int:
    """Write what is wrong with the command line, or the help that was asked for by saying nothing."""
    message: str = advice_on(problem, arguments) or _plain(problem.format_message())
    if "\n" in message.strip() and not as_json:
        problem.show()
        return USAGE
    context = getattr(problem, "ctx", None)
    advice = f" (see `{context.command_path} --help`)" if context is not None else ""
    _write("usage", message.splitlines()[0].rstrip(".") + advice if message else "usage", {}, as_json)
    return USAGE


def _plain(message: str) -> str:
    """What the parser of the command line found, without its names of types and ranges."""
    for pattern, words in _PLAIN:
        message = pattern.sub(words, message)
    return message


def warn(sentence: str, as_json: bool) -> None:
    """Write a warning as one line, or one JSON object with the code `warning`; the command goes on."""
    _write("warning", sentence if as_json else f"warning: {sentence}", {}, as_json)


def _write(code: str, message: str, fields: dict[str, Any], as_json: bool) -> None:
    line = " ".join(message.split())
    told = {"code": code, "message": line, "fields": fields}
    sys.stderr.write((json.dumps(told, default=str) if as_json else f"perdure: {line}") + "\n")
