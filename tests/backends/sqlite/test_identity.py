"""A log that goes away is noticed before anything that was committed into it is acknowledged."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from backends.sqlite.notes import ADDING, make_table, read_notes
from perdure.ambient import SystemClock
from perdure.errors import StoreFailed
from perdure.store.sqlite.identity import FINE_US, FileIdentity
from perdure.store.sqlite.store import SqliteStore

PATIENCE_US = 20_000_000


def remove(log: Path) -> None:
    log.unlink()


def replace(log: Path) -> None:
    log.with_name("other").write_bytes(b"")
    log.with_name("other").rename(log)


def move_away(log: Path) -> None:
    log.rename(log.with_name("elsewhere"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log beside its database."""
    (tmp_path / "perdure.db").touch()
    beside = tmp_path / "perdure.db-wal"
    beside.touch()
    return beside


def looked_at_until_settled(identity: FileIdentity) -> None:
    """The folder has not changed for so long that it alone is asked."""
    clock = SystemClock()
    until_us = clock.monotonic_us() + PATIENCE_US
    identity.check_log()
    while identity._known_folder is None:
        assert clock.monotonic_us() < until_us
        identity.check_log()


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "changed just now"])
@pytest.mark.parametrize("act", [remove, replace, move_away])
def test_a_log_that_is_not_there_any_more_is_noticed_at_the_next_look(
    log: Path, act: Callable[[Path], None], settled: bool
):
    identity = FileIdentity(str(log.with_name("perdure.db")))
    if settled:
        looked_at_until_settled(identity)
    else:
        identity.check_log()
    act(log)
    with pytest.raises(apsw.IOError, match="removed or replaced"):
        identity.check_log()


def test_once_its_folder_is_quiet_the_log_itself_is_left_alone(log: Path, monkeypatch: pytest.MonkeyPatch):
    """Asking for its times would make the next sync of the log write them."""
    identity = FileIdentity(str(log.with_name("perdure.db")))
    looked_at_until_settled(identity)
    asked: list[str] = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path: asked.append(str(path)) or stat(path))
    identity.check_log()
    assert asked == [str(log.parent)]


def test_a_folder_that_changed_within_a_tick_is_not_believed(log: Path):
    """Two changes within one tick of the clock look like one."""
    identity = FileIdentity(str(log.with_name("perdure.db")))
    looked_at_until_settled(identity)
    begun_us = SystemClock().monotonic_us()
    log.with_name("something").touch()
    identity.check_log()
    if SystemClock().monotonic_us() - begun_us < FINE_US:
        assert identity._known_folder is None


def test_the_log_of_a_database_behind_a_link_is_looked_for_where_it_is(log: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "linked.db"
    link.symlink_to(log.with_name("perdure.db"))
    identity = FileIdentity(str(link))
    identity.check_log()
    log.unlink()
    with pytest.raises(apsw.IOError, match="removed or replaced"):
        identity.check_log()


@pytest.mark.parametrize("linked", [False, True], ids=["plain", "behind a link"])
async def test_what_was_committed_into_a_log_that_is_gone_is_not_acknowledged(tmp_path: Path, linked: bool):
    path = tmp_path / "perdure.db"
    await (await SqliteStore.open(path)).close()
    name = tmp_path / "link.db" if linked else path
    if linked:
        name.symlink_to(path)
    store = await SqliteStore.open(name)
    await make_table(store)
    await store.writer.gather(ADDING, ["kept"])
    connection = store.writer.commits.connected()
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    (tmp_path / "perdure.db-wal").unlink()
    with pytest.raises(StoreFailed, match="no program may remove"):
        await store.writer.gather(ADDING, ["unknown"])
    await store.writer.gather(ADDING, ["after"])
    assert {"kept", "after"} <= set(await read_notes(store))
    await store.close()
