"""A SQLite file that has its schema already: to take every step anew costs more than most tests do."""

import functools
import tempfile
from pathlib import Path

from perdure.store.sqlite.opening import open_writing
from perdure.store.sqlite.schema import known_steps, take_steps

STEPS_TAKEN_US = 1_700_000_000_000_000
"""Before any instant of a test's clock."""


def lay(path: Path) -> Path:
    """Put such a file there, unless there is one. Nobody has opened a store on it yet: its clock is not anchored."""
    if not path.exists():
        path.write_bytes(_migrated())
    return path


@functools.cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="perdure-migrated-") as folder:
        path = Path(folder, "store.db")
        connection = open_writing(str(path), 5.0)
        take_steps(connection, known_steps(), STEPS_TAKEN_US)
        connection.close()
        return path.read_bytes()
