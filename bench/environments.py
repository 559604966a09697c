"""The environments of the peers: each has one of its own below `.bench/`, made by `scripts/install_peers.sh`."""

import functools
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".bench"


class NotInstalled(Exception):
    """A peer is not here; the text says why, or what to do."""


def python_of(environment: str | None) -> str:
    """The interpreter of an environment, or our own. Raises `NotInstalled`."""
    if environment is None:
        return sys.executable
    skipped = FOLDER / f"{environment}.skipped"
    if skipped.exists():
        raise NotInstalled(skipped.read_text().strip())
    python = FOLDER / environment / "bin" / "python"
    if not python.exists():
        raise NotInstalled("not installed: run `make install-peers`")
    return str(python)


@functools.cache
def version_of(environment: str | None, package: str) -> str:
    """The version of a package in an environment. Raises `NotInstalled`."""
    code = "import importlib.metadata as m, json, sys; print(json.dumps(m.version(sys.argv[1])))"
    command = [python_of(environment), "-c", code, package]
    version: str = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return version


def server_program() -> str:
    """The Valkey server of the wheel. Raises `NotInstalled`."""
    python_of("valkey")
    found = sorted((FOLDER / "valkey").rglob("valkey-server")) or sorted((FOLDER / "valkey").rglob("redis-server"))
    if not found:
        raise NotInstalled("the wheel brought no server for this machine")
    return str(found[0])
