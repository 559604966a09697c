"""A script that uses the app without `with` and just ends."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import perdure
app = perdure.App("perdure.db")
@app.task("work")
def work(number: int) -> int:
    return number
handle = app.sync.submit("work", number=1)
print(handle.status().state)
"""


def test_it_ends_quietly(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "queued\n", "")
