"""What is refused at the door, and what the message tells whoever is woken by it."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sqlite.fixed_clock import FixedClock
from backends.sqlite.notes import ADDING, make_table, read_notes
from perdure.errors import (
    Misuse,
    SchemaTooNew,
    SchemaTooOld,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    StoreUnusable,
    UnsafeStore,
)
from perdure.store.sqlite.identity import LOOK_EVERY_US
from perdure.store.sqlite.opening import check_filesystem, check_version, filesystem
from perdure.store.sqlite.store import SqliteStore
from skipping import skip


@pytest.mark.parametrize("version", ["3.7.0", "3.40.1", "3.44.5", "3.45.3", "3.50.6", "3.51.2"])
def test_a_sqlite_with_the_wal_reset_defect_is_refused(version: str):
    with pytest.raises(UnsafeStore, match=r"3\.51\.3.*pip install"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.6.23", "3.44.6", "3.44.7", "3.50.7", "3.51.3", "3.52.0", "4.0.0"])
def test_a_sqlite_without_the_defect_is_taken(version: str):
    check_version(version)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/my\\040share rw - cifs //server/share rw
33 22 0:42 / /mnt/ssh rw - fuse.sshfs me@server:/ rw
34 22 0:43 / /mnt/disk rw - fuseblk /dev/sdc rw
35 22 0:44 / /data rw - ext4 /dev/sdd rw
36 35 0:45 / /data rw - 9p host rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/perdure", "ext4"),
        ("/home/ada", "nfs4"),
        ("/home/local/ada", "xfs"),
        ("/homework", "ext4"),
        ("/mnt/my share/db", "cifs"),
        ("/mnt/ssh", "fuse.sshfs"),
        ("/mnt/disk/db", "fuseblk"),
        ("/data/db", "9p"),
    ],
)
def test_the_filesystem_of_a_folder_is_that_of_the_nearest_mount(folder: str, kind: str):
    assert filesystem(folder, MOUNTS) == kind


@pytest.mark.parametrize("folder", ["/home/ada", "/mnt/my share", "/mnt/ssh", "/data"])
def test_a_network_filesystem_is_refused(folder: str):
    with pytest.raises(UnsafeStore, match="local disk"):
        check_filesystem(folder, MOUNTS)


@pytest.mark.parametrize("folder", ["/var", "/home/local", "/mnt/disk"])
def test_a_local_filesystem_is_taken(folder: str):
    check_filesystem(folder, MOUNTS)


async def test_a_missing_folder_is_named(tmp_path: Path):
    with pytest.raises(StoreUnreachable, match=r"nowhere is not a directory: create it"):
        await SqliteStore.open(str(tmp_path / "nowhere" / "perdure.db"))
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_is_not_a_file(tmp_path: Path):
    with pytest.raises(StoreUnreachable, match="is a directory"):
        await SqliteStore.open(str(tmp_path))


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path):
    path = tmp_path / "perdure.db"
    path.write_bytes(b"Dear diary, " * 500)
    with pytest.raises(StoreUnusable, match="not an SQLite database"):
        await SqliteStore.open(str(path))
    assert path.read_bytes() == b"Dear diary, " * 500


async def test_an_unknown_level_of_durability_is_a_misuse(tmp_path: Path):
    with pytest.raises(Misuse, match="FULL"):
        await SqliteStore.open(str(tmp_path / "perdure.db"), synchronous="MAYBE")


async def test_a_file_of_a_later_perdure_is_refused_and_untouched(tmp_path: Path):
    path = tmp_path / "perdure.db"
    store = await SqliteStore.open(str(path), inline=True)
    store.writer.commits.connected().execute("INSERT INTO perdure_migrations VALUES (9999, 'from_the_future', 1)")
    await store.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="9999") as caught:
        await SqliteStore.open(str(path))
    assert caught.value.exit_code == 3
    assert path.read_bytes() == before


async def test_a_file_without_the_schema_is_refused_when_migrations_are_run_by_hand(tmp_path: Path):
    with pytest.raises(SchemaTooOld, match="perdure db migrate"):
        await SqliteStore.open(str(tmp_path / "perdure.db"), migrate=False)


async def test_a_file_whose_tables_are_somebody_elses_is_refused_and_untouched(tmp_path: Path):
    path = tmp_path / "perdure.db"
    store = await SqliteStore.open(str(path), inline=True)
    connection = store.writer.commits.connected()
    connection.execute("DROP TABLE perdure_migrations; CREATE TABLE perdure_migrations (version TEXT)")
    await store.close()
    with pytest.raises(StoreUnusable, match="not perdure's"):
        await SqliteStore.open(str(path))


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be somebody whom permissions bind: they do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach and write."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


async def test_a_file_that_may_not_be_written_is_told(open_folder: Path):
    path = open_folder / "perdure.db"
    await (await SqliteStore.open(str(path))).close()
    path.chmod(0o400)
    with pytest.raises(StoreReadOnly, match="owner or mode"), as_nobody():
        await SqliteStore.open(str(path))


async def test_a_folder_that_may_not_be_written_is_told(open_folder: Path):
    open_folder.chmod(0o555)
    with pytest.raises(StoreReadOnly, match="log and locks beside the file"), as_nobody():
        await SqliteStore.open(str(open_folder / "perdure.db"))


async def test_a_lock_of_somebody_else_is_told(open_folder: Path):
    (open_folder / "perdure.db-lock").touch(0o600)
    with pytest.raises(StoreReadOnly, match="may not be written"), as_nobody():
        await SqliteStore.open(str(open_folder / "perdure.db"))


def mount(folder: Path, options: str) -> None:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        skip(f"cannot mount: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path):
    """A filesystem with room for one megabyte."""
    folder = tmp_path / "small"
    mount(folder, "size=1m")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_refuses_new_work_keeps_what_was_acknowledged_and_recovers(small_disk: Path):
    store = await SqliteStore.open(str(small_disk / "perdure.db"))
    await make_table(store)
    kept: list[str] = []

    async def fill() -> None:
        for n in range(1000):
            text = f"{n:04d}" + "x" * 20_000
            await store.writer.gather(ADDING, [text])
            kept.append(text)

    with pytest.raises(StoreFull, match="no space"):
        await fill()
    assert await read_notes(store) == kept

    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    await store.writer.gather(ADDING, ["after"])
    assert await read_notes(store) == [*kept, "after"]
    await store.close()


async def test_a_read_only_mount_is_told(tmp_path: Path):
    folder = tmp_path / "mounted"
    mount(folder, "size=4m")
    try:
        await (await SqliteStore.open(str(folder / "perdure.db"))).close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(StoreReadOnly, match="mount"):
            await SqliteStore.open(str(folder / "perdure.db"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


async def test_a_file_that_was_moved_while_open_is_not_read_any_more(tmp_path: Path):
    clock = FixedClock()
    path = tmp_path / "perdure.db"
    store = await SqliteStore.open(str(path), clock=clock)
    assert await store.definitions.list("o", "queue") == []
    path.rename(tmp_path / "moved.db")
    clock.advance(LOOK_EVERY_US)
    for _ in range(2):
        with pytest.raises(StoreUnreachable, match="put the file back"):
            await store.definitions.list("o", "queue")
    (tmp_path / "moved.db").rename(path)
    assert await store.definitions.list("o", "queue") == []
    await store.close()


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
async def test_a_file_that_is_removed_or_replaced_while_open_gets_no_more_acknowledged_work(
    tmp_path: Path, replaced: bool
):
    clock = FixedClock()
    path = tmp_path / "perdure.db"
    store = await SqliteStore.open(str(path), clock=clock, inline=True)
    await make_table(store)
    path.rename(tmp_path / "moved.db")
    if replaced:
        path.touch()
    clock.advance(LOOK_EVERY_US)
    for _ in range(2):
        with pytest.raises(StoreUnreachable, match="put the file back"):
            await store.writer.gather(ADDING, ["into nowhere"])
    assert path.exists() == replaced
    path.unlink(missing_ok=True)
    (tmp_path / "moved.db").rename(path)
    assert await store.writer.gather(ADDING, ["back"]) == ["noted back"]
    await store.close()


async def test_a_store_stays_at_its_file_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    store = await SqliteStore.open("perdure.db")
    monkeypatch.chdir("/")
    await make_table(store)
    assert await read_notes(store) == []
    await store.close()
