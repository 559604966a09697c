"""The peer: submit one by one, and a drain by one consumer of 8 threads."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

THREADS = 8
PATIENCE = 120.0


def _ticks(folder: Path) -> list[float]:
    data = (folder / "ticks").read_bytes()
    return [tick for (tick,) in struct.iter_unpack("<d", data[: len(data) // 8 * 8])]


def measure(folder: Path, payload: str, tasks: int) -> dict[str, Any]:
    """Submits a second, and runs a second from the first handler to the last."""
    os.environ["BENCH_FOLDER"] = str(folder)
    from bench.huey_tasks import huey, noop

    start = time.perf_counter()
    for _ in range(tasks):
        noop(payload)
    submit = tasks / (time.perf_counter() - start)
    consumer = [sys.executable, "-m", "huey.bin.huey_consumer", "bench.huey_tasks.huey"]
    process = subprocess.Popen(
        [*consumer, "-k", "thread", "-w", str(THREADS), "-q"],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        begin = time.monotonic()
        while len(_ticks(folder)) < tasks or huey.pending_count():
            if time.monotonic() - begin > PATIENCE or process.poll() is not None:
                raise SystemExit(f"the peer ran {len(_ticks(folder))} of {tasks} tasks")
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    ticks = sorted(_ticks(folder))
    return {"submit one by one": submit, "drain": (len(ticks) - 1) / (ticks[-1] - ticks[0])}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), "x" * int(sys.argv[2]), int(sys.argv[3]))))
