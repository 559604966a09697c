"""Forks with more open on the file than the store knows of: the child works, and nothing of it is lost."""

import os
import subprocess
import sys
from pathlib import Path

import apsw

SCRIPT = """
import asyncio, os, sys, time
import apsw
import perdure

path = sys.argv[1]
app = perdure.App(path)

@app.task("note")
def note(x: int) -> None: ...

async def make():
    async with perdure.App(path):
        pass

asyncio.run(make())
own = apsw.Connection(path)
own.execute("BEGIN IMMEDIATE")
app.sync.submit(note, x=-1, connection=own)
own.execute("COMMIT")
if (child := os.fork()) == 0:
    async def go():
        async with app:
            for number in range(40):
                await app.submit(note, x=number)
                await asyncio.sleep(0.002)
    asyncio.run(go())
    try:
        own.execute("SELECT 1")
    except apsw.ConnectionClosedError:
        os._exit(0)
    os._exit(1)
app.sync.close()
own.close()
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_closes_what_its_parents_program_had_open_on_the_file_and_loses_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "perdure.db")
    subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, path], check=True, timeout=60, env=os.environ.copy())
    ((tasks,),) = apsw.Connection(path).execute("SELECT count(*) FROM perdure_tasks")
    assert tasks == 41
