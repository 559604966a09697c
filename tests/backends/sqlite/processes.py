"""Python scripts run as processes of their own beside a test."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]

PREAMBLE = f"""
import asyncio, os, signal, sys, time
sys.path.insert(0, {str(TESTS)!r})
from backends.sqlite.notes import ADDING, make_table, read_notes
from perdure.store.sqlite.store import SqliteStore
from perdure.store.wakeups import Topic
path = sys.argv[1]
"""


def start(script: str, *arguments: object) -> "subprocess.Popen[str]":
    """Begin a script; `path` is its first argument."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PREAMBLE + script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> str:
    """What the script printed. It must have ended well."""
    try:
        output, errors = process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return output
