"""Several processes on one file: turns, stops, kills, forks, and a reader that stays."""

import asyncio
import os
import signal
import time
from pathlib import Path

import apsw
import pytest

from backends.sqlite.notes import ADDING, make_table, read_notes
from backends.sqlite.processes import finish, start
from perdure.errors import StoreBusy
from perdure.store.sqlite.lock import FileLock
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.wal import CUT_FROM_PAGES, PAGE_BYTES, PASSIVE_EVERY_PAGES

WRITE_300 = """
async def main():
    store = await SqliteStore.open(path, synchronous="NORMAL", lock_timeout=30.0)
    for n in range(300):
        await store.writer.gather(ADDING, [f"{sys.argv[2]}-{n}"])
    await store.close()
asyncio.run(main())
"""


async def test_four_processes_write_at_once_and_none_is_turned_away(threaded: SqliteStore):
    writers = [start(WRITE_300, threaded.path, number) for number in range(4)]
    await asyncio.gather(*(asyncio.to_thread(finish, writer) for writer in writers))

    notes = await read_notes(threaded)
    assert sorted(notes) == sorted(f"{number}-{n}" for number in range(4) for n in range(300))
    for number in range(4):
        own = [note for note in notes if note.startswith(f"{number}-")]
        assert own == [f"{number}-{n}" for n in range(300)]


HOLD = """
from perdure.store.sqlite.lock import FileLock
lock = FileLock(path, 1.0)
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
"""


async def test_a_writer_that_is_stuck_costs_the_others_a_clear_error_and_nothing_else(tmp_path: Path):
    store = await SqliteStore.open(str(tmp_path / "perdure.db"), lock_timeout=0.2)
    await make_table(store)
    holder = start(HOLD, store.path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    for _ in range(2):
        with pytest.raises(StoreBusy, match=r"within 0\.2 s"):
            await store.writer.gather(ADDING, ["too late"])
    finish(holder)
    assert await store.writer.gather(ADDING, ["in time"]) == ["noted in time"]
    assert await read_notes(store) == ["in time"]
    await store.close()


async def test_a_lock_that_comes_too_late_is_not_kept_from_others(tmp_path: Path):
    path = str(tmp_path / "perdure.db")
    first, impatient, third = FileLock(path, 5.0), FileLock(path, 0.05), FileLock(path, 20.0)
    first.acquire()
    with pytest.raises(StoreBusy):
        impatient.acquire()
    first.release()
    await asyncio.to_thread(third.acquire)
    third.release()
    for lock in (first, impatient, third):
        lock.close()


async def test_a_killed_holder_is_no_holder(threaded: SqliteStore):
    holder = start(HOLD, threaded.path)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert await threaded.writer.gather(ADDING, ["a"]) == ["noted a"]


WRITE_UNTIL_KILLED = """
async def main():
    store = await SqliteStore.open(path)
    for n in range(10**9):
        await store.writer.gather(ADDING, [str(n)])
        print(n, flush=True)
asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_a_kill(threaded: SqliteStore):
    writer = start(WRITE_UNTIL_KILLED, threaded.path)
    assert writer.stdout is not None
    for _ in range(50):
        await asyncio.to_thread(writer.stdout.readline)
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    acknowledged = 50 + len(rest.splitlines())

    notes = await read_notes(threaded)
    assert notes[:acknowledged] == [str(n) for n in range(acknowledged)]
    assert len(notes) <= acknowledged + 1


FORK = """
async def note(store, text):
    await store.writer.gather(ADDING, [text])
    return await read_notes(store)

store = asyncio.run(SqliteStore.open(path))
asyncio.run(make_table(store))
asyncio.run(note(store, "before"))
inherited = os.listdir("/proc/self/fd")
child = os.fork()
if child == 0:
    own = [os.readlink(f"/proc/self/fd/{fd}") for fd in inherited if os.path.exists(f"/proc/self/fd/{fd}")]
    clean = sum(name.startswith(path) for name in own) == 1  # its own handle of the lock
    for n in range(50):
        asyncio.run(note(store, f"child-{n}"))
    locks = [line for line in open("/proc/locks") if f" {os.getpid()} " in line]
    asyncio.run(store.close())
    os._exit(0 if clean and locks else 7)
for n in range(50):
    asyncio.run(note(store, f"parent-{n}"))
_, status = os.waitpid(child, 0)
notes = asyncio.run(note(store, "after"))
asyncio.run(store.close())
print(os.waitstatus_to_exitcode(status), len(notes))
"""


def test_a_forked_child_uses_the_store_beside_its_parent(tmp_path: Path):
    output = finish(start(FORK, tmp_path / "perdure.db"))
    assert output.split() == ["0", "102"]
    connection = apsw.Connection(str(tmp_path / "perdure.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


FORK_WHILE_WRITING = """
async def write(store, name, count):
    await asyncio.gather(*(store.writer.gather(ADDING, [f"{name}-{n}"]) for n in range(count)))

async def main():
    store = await SqliteStore.open(path, synchronous="NORMAL")
    await make_table(store)
    children = []
    for number in range(8):
        writing = asyncio.create_task(write(store, f"parent-{number}", 200))
        reading = [asyncio.create_task(read_notes(store)) for _ in range(3)]
        await asyncio.sleep(0.002)
        child = os.fork()
        if child == 0:
            # The parent's loop is not ours: its wake-ups would be stolen from the parent.
            asyncio.events._set_running_loop(None)
            asyncio.run(after(store, number))
            os._exit(0)
        children.append(child)
        await writing
        await asyncio.gather(*reading)
    for child in children:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
    print(len(await read_notes(store)))
    await store.close()

async def after(store, number):
    await write(store, f"child-{number}", 50)
    await store.close()

asyncio.run(main())
"""


def test_forks_in_the_midst_of_writing_and_reading_harm_nobody(tmp_path: Path):
    assert finish(start(FORK_WHILE_WRITING, tmp_path / "perdure.db")).split() == [str(8 * 200 + 8 * 50)]
    connection = apsw.Connection(str(tmp_path / "perdure.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def log_bytes(path: str) -> int:
    return os.stat(f"{path}-wal").st_size


async def fill(store: SqliteStore, total_bytes: int) -> None:
    text = "x" * 1_000_000
    for n in range(total_bytes // len(text)):
        await store.writer.gather(ADDING, [f"{n}{text}"])


async def test_the_log_stays_short_without_readers(threaded: SqliteStore):
    await fill(threaded, 60_000_000)
    assert log_bytes(threaded.path) < 3 * PASSIVE_EVERY_PAGES * PAGE_BYTES


async def test_a_reader_that_stays_lets_the_log_grow_by_what_is_written_and_it_shrinks_afterwards(
    threaded: SqliteStore,
):
    written = CUT_FROM_PAGES * PAGE_BYTES + 20_000_000
    await fill(threaded, 10_000_000)
    reader = apsw.Connection(threaded.path, flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM notes").fetchall()
    await fill(threaded, written)
    assert written < log_bytes(threaded.path) < written * 1.3

    reader.close(True)
    deadline = time.monotonic() + 20
    while log_bytes(threaded.path) > 3 * PASSIVE_EVERY_PAGES * PAGE_BYTES:
        assert time.monotonic() < deadline
        await threaded.writer.gather(ADDING, ["a little"])
        await asyncio.sleep(0.05)
