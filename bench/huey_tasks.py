"""The peer's side: huey on SQLite with WAL and fsync, set up as its documents say. Imported by its consumer."""

import os
import struct
import time

from huey import SqliteHuey

FOLDER = os.environ["BENCH_FOLDER"]
TICKS = os.open(f"{FOLDER}/ticks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

huey = SqliteHuey("bench", filename=f"{FOLDER}/huey.db", fsync=True)


@huey.task()
def noop(data: str) -> None:
    """Do nothing, and leave a mark of when."""
    os.write(TICKS, struct.pack("<d", time.monotonic()))
