"""The steps of the schema: numbered files, each taken once, each in one transaction under the file lock."""

import os
import re
from collections.abc import Sequence
from importlib.resources import files

import apsw

from perdure.errors import SchemaTooNew, StoreUnusable
from perdure.store.relational.operation import Operation
from perdure.store.schema import Migration, too_old
from perdure.store.sqlite.faults import translate
from perdure.store.sqlite.opening import MEMORY, open_reading
from perdure.store.sqlite.readers import Readers
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.transaction import Connection, Transaction
from perdure.store.sqlite.writer import Writer

STATUS_LOCK_TIMEOUT = 5.0

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


def known_steps() -> list[Migration]:
    """Every step that this perdure knows, in order, none of them taken."""
    found = []
    for entry in (files("perdure.store.sqlite") / "migrations").iterdir():
        match = _FILE.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found)


def taken_steps(connection: Connection) -> dict[int, tuple[str, int]]:
    """The name and instant of each step that a database took, by number."""
    tx = Transaction(connection, 0)
    if tx.value("schema_exists") is None:
        return {}
    try:
        return {number: (name, applied_us) for number, name, applied_us in tx.run("schema_applied")}
    except apsw.SQLError as error:
        raise StoreUnusable(
            f"this database has a table `migrations` that is not perdure's ({error}): use a file of its own"
        ) from error


def missing_steps(taken: dict[int, tuple[str, int]], known: Sequence[Migration]) -> list[Migration]:
    """The steps still to take. Raises `SchemaTooNew` when the database took one that is unknown here."""
    newest = max((step.number for step in known), default=0)
    beyond = max(taken, default=0)
    if beyond > newest:
        raise SchemaTooNew(
            f"the database has schema {beyond}, this perdure knows {newest} and older: "
            "install the perdure that wrote it, or a later one",
            schema=beyond,
            known=newest,
        )
    return [step for step in known if step.number not in taken]


def check_current(connection: apsw.Connection, known: Sequence[Migration]) -> None:
    """Raise `SchemaTooNew` or `SchemaTooOld` unless exactly the known steps were taken."""
    missing = missing_steps(taken_steps(connection), known)
    if missing:
        raise too_old(connection.filename or MEMORY, missing, known)


def check_file(path: str, lock_timeout: float) -> None:
    """Raise what `check_current` raises, for a file that is only read and need not be there."""
    known = known_steps()
    if not os.path.exists(path):
        raise too_old(path, known, known)
    connection = open_reading(path, lock_timeout)
    try:
        check_current(connection, known)
    except apsw.Error as error:
        raise translate(error, path) from error
    finally:
        connection.close()


def take_steps(connection: apsw.Connection, known: Sequence[Migration], applied_us: int) -> list[Migration]:
    """Take what is missing, each step in one transaction, and return it. Call it under the file lock."""
    done = []
    for step in missing_steps(taken_steps(connection), known):
        tx = Transaction(connection, applied_us)
        connection.execute(STATEMENTS["transaction_begin"])
        try:
            done += _take(tx, [step])
            connection.execute(STATEMENTS["transaction_commit"])
        except BaseException:
            if connection.in_transaction:
                connection.execute(STATEMENTS["transaction_rollback"])
            raise
    return [step for step in done if step is not None]


def _take(tx: Transaction, steps: list[Migration]) -> list[Migration | None]:
    """Take steps within a transaction that writes; `None` for those that somebody else has taken meanwhile."""
    tx.run("schema_create")
    taken = taken_steps(tx.connection)
    return [None if step.number in taken else _take_one(tx, step) for step in steps]


def _take_one(tx: Transaction, step: Migration) -> Migration:
    try:
        tx.connection.execute(step.sql)
    except apsw.SQLError as error:
        raise StoreUnusable(
            f"step {step.number} ({step.name}) of the schema does not fit this database ({error}): "
            "use a file that holds nothing else by these names",
            step=step.number,
        ) from error
    tx.run("schema_record", number=step.number, name=step.name, applied_us=tx.now_us)
    return step._replace(applied_us=tx.now_us)


TAKE_STEP = Operation("take_step", rank=0, apply=_take, max_items=1)


class SqliteSchema:
    """Meets `store.schema.Schema` for an open store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def status(self) -> list[Migration]:
        """Every known step in order. Raises `SchemaTooNew`."""
        return await self._readers.read(_status)

    async def migrate(self) -> list[Migration]:
        """Take the steps that are missing and return them. Raises `SchemaTooNew`."""
        done: list[Migration] = []
        for step in await self.status():
            if step.applied_us is None:
                done += [taken for taken in await self._writer.gather(TAKE_STEP, [step]) if taken is not None]
        return done


def _status(tx: Transaction) -> list[Migration]:
    known, taken = known_steps(), taken_steps(tx.connection)
    missing_steps(taken, known)
    return [step._replace(applied_us=taken[step.number][1]) if step.number in taken else step for step in known]


def read_status(path: str) -> list[Migration]:
    """Every known step in order, for a file that need not be current. Raises `SchemaTooNew`, `StoreUnreachable`."""
    connection = open_reading(path, STATUS_LOCK_TIMEOUT)
    try:
        return _status(Transaction(connection, 0))
    except apsw.Error as error:
        raise translate(error, path) from error
    finally:
        connection.close()
